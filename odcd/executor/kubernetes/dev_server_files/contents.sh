#!/bin/sh
# /odc/job/contents: list the home: one line with its total KiB, then its tree to depth 3. It runs once, before a dev
# server with a disk ends, and is cut off when it takes too long. So the total comes first, with its own timeout.
home=/home/dev
used=''
command -v timeout >/dev/null 2>&1 && used=$(timeout 6 du -sxk "$home" 2>/dev/null | cut -f1)
# The usage of the whole file system is available at once, and close enough.
[ -n "$used" ] || used=$(df -Pk "$home" 2>/dev/null | { read -r _; read -r _ _ some _ && printf '%s' "$some"; })
printf '%s\n' "${used:-?}"
if command -v tree >/dev/null 2>&1; then
  tree -a -x -L 3 --noreport "$home"
else
  find "$home" -xdev -maxdepth 3 -print 2>/dev/null | LC_ALL=C sort
fi | head -c 270000
