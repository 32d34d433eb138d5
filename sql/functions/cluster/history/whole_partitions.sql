-- odc.whole_partitions: partitions of job that can be dropped whole: all their ids are used, all their jobs ended before a
-- moment, and nothing live needs one of the jobs.
-- Returns    the partition and its ids, from low to below high; lowest first
create or replace function odc.whole_partitions(p_before timestamptz, p_now timestamptz)
returns table (part text, low bigint, high bigint)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_old boolean;
begin
    for part, low, high in
        select c.relname::text, b.bounds[1]::bigint, b.bounds[2]::bigint
          from pg_inherits as i
          join pg_class as c on c.oid = i.inhrelid
         cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''?(\d+)''?\) TO \(''?(\d+)') as b (bounds)
         where i.inhparent = 'job'::regclass and not i.inhdetachpending
         order by b.bounds[1]::bigint
    loop
        exit when high > coalesce(pg_sequence_last_value('job_id_seq'), 0);
        -- The last end in each state is one row of an index.
        execute format(
            $sql$
            select not exists (
                select from unnest(_end_states()) as s (state)
                 cross join lateral (select j.ended_at from %1$I as j where j.state = s.state::job_state
                                      order by j.ended_at desc limit 1) as e
                 where e.ended_at >= $1)
            $sql$, part) into v_old using p_before;
        continue when not v_old
            or exists (select from pending as p where p.job_id >= low and p.job_id < high)
            or exists (select from running as r where r.job_id >= low and r.job_id < high)
            or exists (select from dependency as d where d.target_id >= low and d.target_id < high)
            or exists (select from disk_volume as v where v.job_id >= low and v.job_id < high)
            or exists (select from gpu_use as g where g.job_id >= low and g.job_id < high and g.stored_at is null)
            or exists (select from history_export as x
                        where x.kind = 'jobs' and x.restored_until > p_now and x.low < whole_partitions.high
                          and x.high > whole_partitions.low);
        -- No array may cross the partition's borders: its tasks are deleted together.
        execute format(
            $sql$
            select not exists (select from %1$I as j where j.array_job_id < $1)
               and not exists (select from job as t where t.array_job_id >= $1 and t.array_job_id < $2 and t.id >= $2)
            $sql$, part) into v_old using low, high;
        continue when not v_old;
        return next;
    end loop;
end;
$$;
