# Yours from the first start on: odc writes it into a new home only.
export ZSH="$HOME/.oh-my-zsh"
ZSH_THEME=robbyrussell
DISABLE_AUTO_UPDATE=true
plugins=(git pip python tmux)
[ -r "$ZSH/oh-my-zsh.sh" ] && source "$ZSH/oh-my-zsh.sh"
source /usr/share/zsh-autosuggestions/zsh-autosuggestions.zsh
# Last, for it looks at what is bound before.
source /usr/share/zsh-syntax-highlighting/zsh-syntax-highlighting.zsh
