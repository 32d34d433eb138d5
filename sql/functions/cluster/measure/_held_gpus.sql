-- odc._held_gpus: the GPUs that were allocated to an ended attempt, by their type at that time: if a node has changed
-- or is gone, its type comes from the past.
-- Arguments  p_started_at  when the attempt began
--            p_at          when its end was recorded
-- Returns    gpu_type: '' if it is no longer known
create or replace function odc._held_gpus(p_job_id bigint, p_attempt integer, p_started_at timestamptz, p_at timestamptz)
returns table (gpu_type text, gpus bigint)
language sql stable as $$
    with member as materialized (
        select distinct on (q.rank) q.node_id, q.gpus, q.past_at
          from odc.allocation_past as q
         where q.job_id = p_job_id and q.past_at > p_started_at and q.past_at <= p_at and not q.past_absent
         order by q.rank, q.past_id desc
    ), held as (
        select m.gpus,
               coalesce((select n.gpu_type from odc.node_past as n
                          where n.id = m.node_id and n.past_at >= m.past_at and not n.past_absent order by n.past_at, n.past_id limit 1),
                        (select n.gpu_type from odc.node as n where n.id = m.node_id)) as gpu_type
          from member as m
         union all
        -- The attempt ended before the past was recorded.
        select t.gpus, (select n.gpu_type from odc.node as n where n.name = t.node_names[1])
          from odc.attempt as t
         where t.job_id = p_job_id and t.attempt = p_attempt and not exists (select from member)
    )
    select coalesce(h.gpu_type, ''), sum(h.gpus) from held as h where h.gpus > 0 group by 1
$$;
