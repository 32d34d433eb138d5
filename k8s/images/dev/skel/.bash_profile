# A login's; what is for every shell is in .bashrc.
[ -r "$HOME/.bashrc" ] && . "$HOME/.bashrc"
