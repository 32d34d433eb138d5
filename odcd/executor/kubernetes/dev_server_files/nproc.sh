#!/bin/sh
# Print the dev server's own number of CPUs, not the node's: builds start as many processes.
read -r cpus </etc/odc/cpus || cpus=1
case ${1-} in
  --ignore=*) cpus=$((cpus - ${1#--ignore=})) ;;
  --ignore) cpus=$((cpus - ${2:-0})) ;;
esac
[ "$cpus" -ge 1 ] || cpus=1
printf '%s\n' "$cpus"
