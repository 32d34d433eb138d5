-- Which PostgreSQL this database was last led on, and when. A promoted standby and a restored backup have another timeline,
-- a copy by pg_dump has another system; a leader that finds one goes on further up with its term and its ids. Locks server
-- for an instant.
alter table server
    add column system_id bigint,
    add column timeline  integer,
    add column led_at    timestamptz;            -- the leader's clock at its last sweep
update server
   set system_id = (select system_identifier from pg_control_system()),
       timeline = ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer;
