#!/bin/sh
# `/odc/job/tell NAME TEXT WALL [FILE...]`: deliver a notice: the file NAME (empty: none) with TEXT in the home, also
# shown at each login; WALL (empty: none) on the terminals; and remove each FILE from the home.
# It fails when nothing was delivered.
set -u
home=/home/dev notices=/odc/run/notices
name=$1 text=$2 wall=$3
shift 3
told=''
for old in "$@"; do
  rm -f -- "$home/$old" "$notices/$old" && told=1
done
if [ -n "$name" ]; then
  new=$home/.odc-notice
  rm -rf -- "$new"
  if printf '%s' "$text" >"$new"; then
    chown dev "$new" 2>/dev/null
    mv -f -- "$new" "$home/$name" && told=1
  fi
  rm -f -- "$new"
  mkdir -p "$notices" && printf '%s' "$text" >"$notices/$name"
fi
[ ! -f /etc/odc/motd ] || cat /etc/odc/motd "$notices"/* >/etc/motd 2>/dev/null
if [ -n "$wall" ]; then
  for terminal in /dev/pts/[0-9]*; do
    [ -c "$terminal" ] || continue
    # In the background: a terminal that no one reads must not delay the others.
    printf '\r\n%s\r\n' "$wall" >"$terminal" 2>/dev/null </dev/null &
    told=1
  done
fi
[ -n "$told" ] || [ -z "$name$wall" ]
