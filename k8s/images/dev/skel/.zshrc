# This file is yours: odc only writes it into a new home folder.
export ZSH="$HOME/.oh-my-zsh"
ZSH_THEME=robbyrussell
DISABLE_AUTO_UPDATE=true
plugins=(git pip python tmux)
[ -r "$ZSH/oh-my-zsh.sh" ] && source "$ZSH/oh-my-zsh.sh"
source /usr/share/zsh-autosuggestions/zsh-autosuggestions.zsh
# This comes last, because it reads the key bindings that exist by then.
source /usr/share/zsh-syntax-highlighting/zsh-syntax-highlighting.zsh
