#!/bin/sh
# /odc/job/keys [LINE...]: set the accepted keys; without lines, the last ones set, else the original ones.
set -u
run=/odc/run etc=/etc/odc
if [ $# -gt 0 ]; then
  rm -f "$run/authorized_keys.new"
  printf '%s\n' "$@" >"$run/authorized_keys.new" && mv -f "$run/authorized_keys.new" "$run/authorized_keys" || exit 1
fi
from=/odc/job/authorized_keys
[ ! -f "$run/authorized_keys" ] || from=$run/authorized_keys
rm -f "$etc/authorized_keys.new"
cat "$from" >"$etc/authorized_keys.new" || exit 1
[ ! -f /odc/keys/gang.pub ] || cat /odc/keys/gang.pub >>"$etc/authorized_keys.new" || exit 1
chmod 644 "$etc/authorized_keys.new" && mv -f "$etc/authorized_keys.new" "$etc/authorized_keys"
