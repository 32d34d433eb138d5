# This file is yours: odc only writes it into a new home folder.
case $- in *i*) ;; *) return ;; esac
HISTCONTROL=ignoreboth HISTSIZE=10000 HISTFILESIZE=20000
shopt -s histappend checkwinsize
PS1='\[\e[1;32m\]\u@\h\[\e[0m\]:\[\e[1;34m\]\w\[\e[0m\]\$ '
alias ls='ls --color=auto' ll='ls -l' grep='grep --color=auto'
[ -r /usr/share/bash-completion/bash_completion ] && . /usr/share/bash-completion/bash_completion
