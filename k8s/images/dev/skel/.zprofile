# A login's; what is for every shell is in .zshrc.
[ -r /etc/profile.d/odc.sh ] && . /etc/profile.d/odc.sh
