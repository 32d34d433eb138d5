#!/bin/sh
# Turns its container into a dev server at every start: the user dev, its home, and an SSH server on port 2222.
# This program is the same for all dev servers; their differences are read as data from files and variables.
#   /odc/job   files that odc created for this attempt    /odc/keys  the host key and the gang's key
#   /odc/run   kept over container restarts: keys that were added later, notices
# It exits with 78 when the image cannot become a dev server; its last line of output has the reason.
set -u
umask 022
PATH=${PATH:-}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
job=/odc/job keys=/odc/keys run=/odc/run etc=/etc/odc home=/home/dev workspace=/workspace

say() { printf 'odc: %s\n' "$*" >&2; }
fail() { say "$*"; exit 78; }
has() { command -v "$1" >/dev/null 2>&1; }

install_server() {
  if has apt-get; then
    apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends openssh-server sudo
  elif has dnf; then dnf install -y openssh-server sudo
  elif has yum; then yum install -y openssh-server sudo
  elif has apk; then apk add --no-cache openssh-server sudo
  elif has zypper; then zypper --non-interactive install openssh sudo
  elif has pacman; then pacman -Sy --noconfirm openssh sudo
  else return 1
  fi
}

# Arguments: user, number, home, shell.
make_user() {
  if has useradd; then
    useradd -U -u "$2" -M -d "$3" -s "$4" "$1" || useradd -U -M -d "$3" -s "$4" "$1"
  else
    adduser -D -H -u "$2" -h "$3" -s "$4" "$1" || adduser -D -H -h "$3" -s "$4" "$1"
  fi
}

[ "$(id -u)" = 0 ] || fail "its container does not run as root"
# A disk may have notices of the reservation that used it before.
[ -d "$run/notices" ] || rm -f "$home"/WARN_EXPIRES_IN_*MIN*.txt "$home/OOM_DETECTED.txt"
mkdir -p "$etc" "$run/notices" /run/sshd /var/empty || fail "it cannot write to its own file system"
chmod 755 "$etc" /run/sshd

has sshd || {
  say "the image has no SSH server; it is being installed"
  install_server >&2
  has sshd || fail "the image has no SSH server, and none could be installed: add openssh-server to it"
}
sshd=$(command -v sshd)
id sshd >/dev/null 2>&1 || make_user sshd 74 /run/sshd /bin/false

mkdir -p "$home" "$workspace"
owner=$(stat -c %u "$home")

# -- the user -----------------------------------------------------------------------------------------------
id dev >/dev/null 2>&1 || {
  shell=/bin/sh
  has bash && shell=$(command -v bash)
  number=$owner
  [ "$owner" != 0 ] || number=1081
  make_user dev "$number" "$home" "$shell" || fail "the image has neither useradd nor adduser, so the user dev cannot be created"
}
# No password matches this. A locked account could not log in by key either.
usermod -p '*' dev 2>/dev/null || sed -i 's/^dev:[^:]*:/dev:*:/' /etc/shadow
# The files of a disk keep their uid: dev gets that uid, in any image.
[ "$owner" = 0 ] || [ "$owner" = "$(id -u dev)" ] || {
  sed "s/^dev:\([^:]*\):[0-9]*:/dev:\1:$owner:/" /etc/passwd >"$etc/passwd" && cat "$etc/passwd" >/etc/passwd
  [ "$owner" = "$(id -u dev)" ] || fail "the files of its disk belong to user $owner, and dev of this image cannot get that uid"
}
uid=$(id -u dev) gid=$(id -g dev)
if has sudo && [ -d /etc/sudoers.d ]; then
  printf 'dev ALL=(ALL:ALL) NOPASSWD:ALL\n' >/etc/sudoers.d/odc-dev
  chmod 440 /etc/sudoers.d/odc-dev
fi

# -- its home: existing files are kept as they are, and the tree is not walked ---------------------------------
# Arguments: names in /etc/skel, which replace those in the home; old ones are kept as NAME.old.
renew() {
  for name in "$@"; do
    [ -e "/etc/skel/$name" ] || continue
    [ ! -e "$home/$name" ] || { rm -rf "$home/$name.old" && mv -f "$home/$name" "$home/$name.old"; }
    cp -R "/etc/skel/$name" "$home/" && chown -R "$uid:$gid" "$home/$name"
  done
}

if [ "$owner" = 0 ] && [ ! -e "$home/.odc-home" ]; then
  [ ! -d /etc/skel ] || [ -e "$home/.profile" ] || cp -R /etc/skel/. "$home/"
  printf 'odc prepared this home folder. Without this file, odc prepares it again when root owns it.\n' >"$home/.odc-home"
  chmod 755 "$home"
  chown -R "$uid:$gid" "$home"
elif [ -n "${ODC_RECREATE_ENV-}" ] && [ ! -e "$run/env_made" ]; then
  renew .bashrc .bash_profile .profile .zshrc .zprofile .oh-my-zsh
fi
: >"$run/env_made"
[ "$(stat -c %u "$home")" = "$uid" ] || chown "$uid:$gid" "$home"
[ "$(stat -c %u "$workspace")" = "$uid" ] || { chown "$uid:$gid" "$workspace" && chmod 755 "$workspace"; }
if [ -d /ccache_shared ]; then
  # Shared by all users. If this fails, the volume's owner has set the mode.
  chmod 777 /ccache_shared 2>/dev/null
  [ -e /ccache ] || ln -s /ccache_shared /ccache
fi
mkdir -p "$home/.ssh" && chown "$uid:$gid" "$home/.ssh" && chmod 700 "$home/.ssh"
# Sessions get the environment of the image and of odc, in every shell.
rm -f "$home/.ssh/environment"
env | while IFS= read -r line; do
  case $line in
    HOME=* | USER=* | LOGNAME=* | SHELL=* | PWD=* | OLDPWD=* | SHLVL=* | _=* | HOSTNAME=* | TERM=* | KUBERNETES_*) ;;
    [A-Za-z_]*=*) printf '%s\n' "$line" ;;
  esac
done >"$home/.ssh/environment"
chown "$uid:$gid" "$home/.ssh/environment"

# -- keys of users, and the key to reach other members ---------------------------------------------------------
was=$(umask)
umask 077
cat "$keys/host" >"$etc/host_key" || fail "it has no host key"
umask "$was"
sh "$job/keys" || fail "its keys cannot be written"
if [ -f "$keys/gang" ]; then
  rm -f "$etc/gang_key"
  (umask 077 && cat "$keys/gang" >"$etc/gang_key") && chown "$uid:$gid" "$etc/gang_key"
  cp "$job/hostfile" "$etc/hostfile"
  cp "$job/known_hosts" "$etc/known_hosts"
  grep -q '^# odc$' /etc/ssh/ssh_config 2>/dev/null || {
    cat "$job/ssh_config" /etc/ssh/ssh_config >"$etc/ssh_config" 2>/dev/null
    cat "$etc/ssh_config" >/etc/ssh/ssh_config
  }
fi

# -- the login message and settings of sessions ---------------------------------------------------------------
printf '%s\n' "${ODC_CPUS:-1}" >"$etc/cpus"
[ ! -d /usr/local/bin ] || { rm -f /usr/local/bin/nproc && cp "$job/nproc" /usr/local/bin/nproc && chmod 755 /usr/local/bin/nproc; }
[ ! -d /etc/profile.d ] || cp "$job/profile" /etc/profile.d/odc.sh
storage=$job/storage
[ "${MULTINODE_RANK:-0}" = 0 ] || storage=$job/storage.others
cat "$job/motd" "$storage" >"$etc/motd"
cat "$etc/motd" "$run"/notices/* >/etc/motd 2>/dev/null

sh "$job/jupyter" begin || say "Jupyter Lab was not started"

# -- the server -----------------------------------------------------------------------------------------------
reply=$("$sshd" -t -f "$job/sshd_config" 2>&1) || fail "the image's SSH server rejects its configuration: $reply"
stopping='' child=''
trap 'stopping=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT
while :; do
  [ -z "$stopping" ] || exit 143
  "$sshd" -D -e -f "$job/sshd_config" &
  child=$!
  while :; do
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break
  done
  [ -z "$stopping" ] || exit 143
  say "the SSH server exited with code $code; odc starts it again"
  sleep 1
done
