-- odc.measure_forecast: GPUs expected to be free in the next hours; see sql/functions/cluster/measure/README.md for the
-- form. Running jobs are expected to run as long as similar jobs did, at most to their limits. Jobs with an expected
-- start (odc.eta) begin at its median and run as long. A node that is booked at that time is not free, nor is one that
-- is down or draining now. Pending jobs that may run on several types count for none.
create or replace function odc.measure_forecast(p_now timestamptz)
returns table (metric text, labels text[], value double precision)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ids   bigint[];  v_uids integer[];  v_keys bigint[];  v_shapes integer[];  v_limits integer[];  v_elapsed integer[];
    v_ends  timestamptz[];
begin
    select array_agg(x.job_id), array_agg(x.uid), array_agg(x.key), array_agg(x.shape_id), array_agg(x.time_limit_s), array_agg(x.elapsed_s)
      into v_ids, v_uids, v_keys, v_shapes, v_limits, v_elapsed
      from (select r.job_id, r.uid, 0::bigint as key, r.shape_id, r.time_limit_s,
                   greatest(0, date_part('epoch', p_now - r.started_at))::integer as elapsed_s
              from running as r
             union all
            select p.job_id, p.uid, 0, p.shape_id, p.time_limit_s, -1
              from eta as e join pending as p on p.job_id = e.job_id
             where e.p50 < p_now + interval '24 hours') as x;
    if v_ids is not null then
        select array_agg(p_now + make_interval(secs => case when v_elapsed[t.ord] < 0 then t.p50_s else greatest(t.p50_s - v_elapsed[t.ord], 1) end)
                         order by t.ord)
          into v_ends
          from _predict_run_times(v_uids, v_keys, v_shapes, v_limits, v_elapsed) as t;
    end if;
    return query
    with horizon as (
        select h, p_now + make_interval(hours => h) as at from unnest('{1,2,4,8,16,24}'::integer[]) as h
    ), run as materialized (
        select u.job_id, u.ends_at, u.elapsed_s from unnest(v_ids, v_ends, v_elapsed) as u (job_id, ends_at, elapsed_s)
    ), place as materialized (
        select n.id, n.gpu_type, f.gpus
          from node as n join node_free as f on f.node_id = n.id where n.state = 'UP' and n.gpus > 0
    ), held as materialized (
        select a.node_id, a.gpus, r.ends_at from run as r join allocation as a on a.job_id = r.job_id where r.elapsed_s >= 0 and a.gpus > 0
    ), free as (
        select h.h, p.gpu_type, sum(p.gpus + coalesce(d.gpus, 0)) as gpus
          from horizon as h
         cross join place as p
          left join (select z.h, x.node_id, sum(x.gpus) as gpus
                       from horizon as z join held as x on x.ends_at <= z.at group by z.h, x.node_id) as d on d.h = h.h and d.node_id = p.id
         where not exists (
               select from booking as b
                 join booking_node as m on m.booking_id = b.id and m.node_id = p.id
                cross join lateral _occurrences(b.starts_at, b.duration_s, b.repeats, b.repeats_until, b.zone, h.at, h.at + interval '1 second') as o
                where b.state in ('PLANNED', 'ACTIVE'))
         group by h.h, p.gpu_type
    ), begun as (
        select h.h, t.gpu_type, sum(s.node_count * s.gpus_per_node) as gpus
          from run as r
          join eta as e on e.job_id = r.job_id
          join pending as p on p.job_id = r.job_id
          join shape as s on s.id = p.shape_id
          join horizon as h on e.p50 <= h.at and greatest(e.p50, p_now) + (r.ends_at - p_now) > h.at
         cross join lateral (
               select coalesce(s.gpu_type, (select min(g.gpu_type) from node_group as g
                                             where g.gpus > 0 and g.partition_ids && s.partition_ids
                                            having count(distinct g.gpu_type) = 1)) as gpu_type) as t
         where r.elapsed_s < 0 and s.gpus_per_node > 0 and t.gpu_type is not null
         group by h.h, t.gpu_type
    )
    select 'odcd_gpus_forecast', array[t.gpu_type, h.h::text],
           greatest(0, coalesce(f.gpus, 0) - coalesce(b.gpus, 0))::double precision
      from (select distinct n.gpu_type from node as n where n.gpus > 0) as t
     cross join horizon as h
      left join free as f on f.h = h.h and f.gpu_type = t.gpu_type
      left join begun as b on b.h = h.h and b.gpu_type = t.gpu_type;
end;
$$;
