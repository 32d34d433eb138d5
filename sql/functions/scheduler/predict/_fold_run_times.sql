-- odc._fold_run_times: learn from the jobs that have ended since the last call.
-- A run time is stored as a part of the time limit, under seven keys, from the most similar jobs to any job at all. A key
-- keeps the last 12 run times (any job at all: 48), so recent behaviour counts. The result depends only on the order of
-- the ends, not on how they are distributed over calls. Jobs whose end was not their own (lost nodes, preempted,
-- never launched) are not learned from.
-- Returns    how many ends were read
-- Locks      run_time rows of those jobs' keys
create or replace function odc._fold_run_times()
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_read integer;
begin
    if not exists (select from run_time_new) then
        return 0;
    end if;
    with taken as (
        delete from run_time_new returning seq, job_id
    ), sample as materialized (
        select t.seq, j.uid, j.shape_id, j.time_limit_s, _run_name(j.name) as name_key, j.ended_at,
               least(case when j.time_limit_s = 2147483647 then 2147483647 else 1000000 end,
                     extract(epoch from j.ended_at - j.started_at)::float8 * 1000000 / _run_unit(j.time_limit_s))::integer
                   as part
          from taken as t
          join job as j on j.id = t.job_id
         where j.started_at is not null and j.state in ('COMPLETED', 'FAILED', 'TIMEOUT', 'OUT_OF_MEMORY', 'CANCELLED')
           and j.reason is distinct from 'JobLaunchFailure'
    ), fresh as (
        select k.uid, k.shape_id, k.limit_s, k.name_key, k.keep,
               (array_agg(s.part order by s.seq desc))[1:k.keep] as parts, count(*) as learnt, max(s.ended_at) as last_at
          from sample as s
         cross join lateral (values (s.uid, s.shape_id, s.time_limit_s, s.name_key, 12),
                                    (s.uid, s.shape_id, s.time_limit_s, 0, 12),
                                    (s.uid, 0, s.time_limit_s, 0, 12),
                                    (s.uid, 0, 0, 0, 12),
                                    (-1, s.shape_id, s.time_limit_s, 0, 12),
                                    (-1, 0, s.time_limit_s, 0, 12),
                                    (-1, 0, 0, 0, 48)) as k (uid, shape_id, limit_s, name_key, keep)
         group by k.uid, k.shape_id, k.limit_s, k.name_key, k.keep
    ), merged as (
        select f.uid, f.shape_id, f.limit_s, f.name_key, f.learnt, greatest(f.last_at, o.last_at) as last_at,
               (f.parts || o.parts)[1:f.keep] as parts
          from fresh as f
          left join run_time as o
            on (o.uid, o.shape_id, o.time_limit_s, o.name_key) = (f.uid, f.shape_id, f.limit_s, f.name_key)
    ), kept as (
        insert into run_time as o (uid, shape_id, time_limit_s, name_key, parts, sorted, learnt, last_at)
        select m.uid, m.shape_id, m.limit_s, m.name_key, m.parts,
               (select array_agg(x order by x) from unnest(m.parts) as x), m.learnt, m.last_at
          from merged as m
         order by m.uid, m.shape_id, m.limit_s, m.name_key
            on conflict (uid, shape_id, time_limit_s, name_key) do update
               set parts = excluded.parts, sorted = excluded.sorted, learnt = o.learnt + excluded.learnt,
                   last_at = excluded.last_at
    )
    select count(*) into v_read from taken;
    return v_read;
end;
$$;
