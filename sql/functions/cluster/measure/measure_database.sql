-- odc.measure_database: PostgreSQL's own figures; see sql/functions/cluster/measure/README.md for the form.
-- Replicas are included as far as odc's database user may see them: PostgreSQL shows their lag to members of pg_monitor.
create or replace function odc.measure_database(p_now timestamptz)
returns table (metric text, labels text[], value double precision)
language sql stable as $$
    select 'odcd_database_bytes', '{}'::text[], pg_database_size(current_database())::double precision
     union all
    select 'odcd_database_connections', array[s], count(a.pid)::double precision
      from unnest('{active,idle,idle in transaction,other}'::text[]) as s
      left join pg_stat_activity as a
        on a.datname = current_database() and a.backend_type = 'client backend'
       and s = case when a.state in ('active', 'idle', 'idle in transaction') then a.state else 'other' end
     group by s
     union all
    -- A dead row stays in its table and indexes while any snapshot is older than its end.
    select 'odcd_database_oldest_snapshot_seconds', '{}',
           coalesce(max(greatest(0, date_part('epoch', p_now - a.xact_start))), 0)
      from pg_stat_activity as a
     where a.datname = current_database() and a.backend_xmin is not null and a.backend_type = 'client backend'
       and a.pid <> pg_backend_pid()
     union all
    select 'odcd_database_replication_lag_seconds', array[r.application_name], max(coalesce(date_part('epoch', r.replay_lag), 0))
      from pg_stat_replication as r where r.state is not null
     group by r.application_name
$$;
