#!/bin/sh
# One program for all of Slurm's commands in a pod: it leaves its call in a folder, and prints what odcd puts there.
name=${0##*/} calls=/odc/run/calls
away="$name: error: Unable to contact slurm controller (connect failure)"
umask=$(umask)
umask 077
call=$calls/new.$$
rm -rf "$call" "$calls/call.$$"
mkdir -p "$call" || exit 1
printf '%s\0' "$@" >"$call/argv"
cat "/proc/$$/environ" >"$call/environment"
source=
if [ "$name" = sbcast ]; then
  # odcd checks the words; the file is the last but one.
  last=
  for word; do
    case $word in -*) ;; *) source=$last last=$word ;; esac
  done
  if [ -n "$source" ] && { [ -d "$source" ] || [ ! -r "$source" ]; }; then
    rm -rf "$call"
    why='Permission denied'
    [ ! -d "$source" ] || why='Is a directory'
    [ -e "$source" ] || why='No such file or directory'
    printf "sbcast: error: Can't open \`%s\`: %s\n" "$source" "$why" >&2
    exit 255
  fi
else
  [ ! /dev/stdin -ef /dev/null ] || : >"$call/no_input"
fi
printf '%s\n' "$name $# $umask $$-$(date +%s)" >"$call/about"
pwd >"$call/folder"
mv "$call" "$calls/call.$$" || exit 1
call=$calls/call.$$
for signal in HUP INT QUIT USR1 USR2 ALRM TERM; do
  trap "printf '%s\n' $signal >>$call/signals" "$signal"
done
exec 3<&0

# Leave the input in pieces, no more than four that were not taken. Their names have the same length: they are taken in that order.
read_input() {
  at=0
  while [ -d "$call" ]; do
    dd bs=65536 count=1 >"$call/piece" 2>/dev/null || return
    size=$(($(wc -c <"$call/piece")))
    mv "$call/piece" "$call/in.$(printf '%015d' "$at")"
    [ "$size" -gt 0 ] || return
    at=$((at + size))
    until set -- "$call"/in.* && [ $# -lt 5 ]; do sleep 0.05 || sleep 1; done
  done
}

next=0 waited=0 reader=
while :; do
  if [ -d "$call/$next" ]; then
    piece=$call/$next waited=0
    [ ! -s "$piece/out" ] || cat "$piece/out"
    [ ! -s "$piece/err" ] || cat "$piece/err" >&2
    if [ -e "$piece/input" ] && [ -z "$reader" ]; then
      if [ -n "$source" ]; then
        { stat -c '%a %Y' -- "$source" && cat -- "$source"; } 2>/dev/null | read_input >/dev/null 2>&1 &
      else
        read_input <&3 >/dev/null 2>&1 &
      fi
      reader=$!
    fi
    if [ -e "$piece/need" ]; then
      read -r path <"$piece/need"
      if [ "$path" = - ]; then cat <&3; else cat -- "$path"; fi >"$call/text" || {
        rm -rf "$call"
        exit 1
      }
      mv "$call/text" "$call/file"
    fi
    if [ -e "$piece/code" ]; then
      read -r code <"$piece/code"
      rm -rf "$call"
      [ -z "$reader" ] || kill "$reader" 2>/dev/null
      exit "$code"
    fi
    mv "$piece/position" "$call/position"
    rm -rf "$piece"
    next=$((next + 1))
    continue
  fi
  waited=$((waited + 1))
  if [ "$next" -eq 0 ] && [ "$waited" -gt 600 ]; then
    rm -rf "$call"
    printf '%s\n' "$away" >&2
    exit 1
  fi
  if [ "$waited" -lt 100 ]; then sleep 0.05; else sleep 0.1; fi 2>/dev/null || sleep 1
done
