#!/bin/sh
# /odc/job/contents: what is in the home: a line with how many KiB in all, then its tree to depth 3. It is run once, when
# a dev server with a disk is to end, and is cut off when it takes too long; so the sum comes first, and has its own end.
home=/home/dev
used=''
command -v timeout >/dev/null 2>&1 && used=$(timeout 6 du -sxk "$home" 2>/dev/null | cut -f1)
# What the file system says is at once there, and near enough.
[ -n "$used" ] || used=$(df -Pk "$home" 2>/dev/null | { read -r _; read -r _ _ some _ && printf '%s' "$some"; })
printf '%s\n' "${used:-?}"
if command -v tree >/dev/null 2>&1; then
  tree -a -x -L 3 --noreport "$home"
else
  find "$home" -xdev -maxdepth 3 -print 2>/dev/null | LC_ALL=C sort
fi | head -c 270000
