#!/bin/bash
# Runs before PostgreSQL starts: a standby without data copies the primary; a former primary stays down.
set -eu
primary=$(cat "${PRIMARY_NAME_FILE:-/etc/odc-db-primary/name}")
host=${PRIMARY_HOST:-odc-db-rw}
if [ "$HOSTNAME" = "$primary" ]; then
  echo "$HOSTNAME is the primary"
elif [ ! -s "$PGDATA/PG_VERSION" ]; then
  echo "$HOSTNAME copies $primary"
  # The slot makes the primary keep what the standby has not read yet.
  pg_receivewal --create-slot --if-not-exists --slot standby --host "$host" --username replicator
  # Only a complete copy is used: an interrupted one starts again.
  rm -rf "$PGDATA" "$PGDATA.part"
  pg_basebackup --host "$host" --username replicator --pgdata "$PGDATA.part" \
    --write-recovery-conf --wal-method stream --slot standby --checkpoint fast
  mv "$PGDATA.part" "$PGDATA"
elif [ -f "$PGDATA/standby.signal" ]; then
  echo "$HOSTNAME follows $primary"
else
  echo "$HOSTNAME was the primary, and $primary is the primary now: the data here may include changes that $primary lacks." >&2
  echo "Delete the volume claim data-$HOSTNAME and the pod; the new pod copies $primary." >&2
  exit 1
fi
