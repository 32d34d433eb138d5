#!/bin/bash
# The image's entrypoint runs this once, at the primary's first start: it creates the roles and the database, and allows
# the standby to stream. Passwords are passed as psql variables, never in a file.
set -eu
psql -v ON_ERROR_STOP=1 -v app="$ODC_DB_PASSWORD" -v streaming="$REPLICATION_PASSWORD" \
  -U postgres -d postgres <<'SQL'
create role odc login password :'app';
create database odc owner odc;
create role replicator replication login password :'streaming';
SQL
echo 'host replication replicator all scram-sha-256' >> "$PGDATA/pg_hba.conf"
# This takes effect at the next start, because the first one ends now. From then on, a commit waits until the standby has it.
psql -v ON_ERROR_STOP=1 -v names="$SYNCHRONOUS_STANDBY_NAMES" -U postgres -d postgres <<'SQL'
alter system set synchronous_standby_names = :'names';
SQL
