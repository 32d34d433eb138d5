#!/bin/bash
# Run once by the image's entrypoint, on the primary's first start: the roles, the database, and who
# may stream. Passwords go in as psql variables, never into a file.
set -eu
psql -v ON_ERROR_STOP=1 -v app="$ODC_DB_PASSWORD" -v streaming="$REPLICATION_PASSWORD" \
  -U postgres -d postgres <<'SQL'
create role odc login password :'app';
create database odc owner odc;
create role replicator replication login password :'streaming';
SQL
echo 'host replication replicator all scram-sha-256' >> "$PGDATA/pg_hba.conf"
# Counts from the next start on, which ends this first one: a commit waits until the standby has it.
psql -v ON_ERROR_STOP=1 -v names="$SYNCHRONOUS_STANDBY_NAMES" -U postgres -d postgres <<'SQL'
alter system set synchronous_standby_names = :'names';
SQL
