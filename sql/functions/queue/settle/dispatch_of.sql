-- odc.dispatch_of: the last attempt (or the given one) of a job, live or ended, for reading its output.
-- Members of an ended attempt have only rank and node. Null: the job never started.
create or replace function odc.dispatch_of(p_job_id bigint, p_attempt integer default null)
returns text
language sql stable as $$
    with live as (
        select r.attempt, r.partition_id, r.started_at, r.ends_at,
               (select jsonb_agg(jsonb_build_object(
                           'rank', a.rank, 'node', n.name, 'gpu_type', n.gpu_type,
                           'gpu_indexes', odc._mask_indexes(a.gpu_mask), 'cpus', a.cpus, 'mem_mib', a.mem_mib,
                           'node_gpus', n.gpus, 'node_cpus', n.cpus, 'node_mem_mib', n.mem_mib,
                           'virtual', n.declared, 'state', a.state) order by a.rank)
                  from odc.allocation as a join odc.node as n on n.id = a.node_id
                 where a.job_id = r.job_id) as members
          from odc.running as r
         where r.job_id = p_job_id and (p_attempt is null or r.attempt = p_attempt)
    ), past as (
        select t.attempt, null::integer as partition_id, t.started_at, t.ended_at as ends_at,
               (select jsonb_agg(jsonb_build_object(
                           'rank', m.rank - 1, 'node', m.name, 'gpu_type', coalesce(n.gpu_type, ''),
                           'gpu_indexes', '[]'::jsonb, 'cpus', 0, 'mem_mib', 0, 'node_gpus', coalesce(n.gpus, 0),
                           'node_cpus', coalesce(n.cpus, 0), 'node_mem_mib', coalesce(n.mem_mib, 0),
                           'virtual', coalesce(n.declared, false), 'state', 'ended') order by m.rank)
                  from unnest(t.node_names) with ordinality as m (name, rank)
                  left join odc.node as n on n.name = m.name) as members
          from odc.attempt as t
         where t.job_id = p_job_id and (p_attempt is null or t.attempt = p_attempt)
    )
    select d.body
      from odc.job as j
     cross join lateral (
           select * from live union all select * from past order by attempt desc limit 1) as x
     cross join lateral odc._dispatch(j, (select term from odc.term), x.attempt, coalesce(x.partition_id, j.partition_id),
                                      x.started_at, x.ends_at, x.members) as d
     where j.id = p_job_id;
$$;
