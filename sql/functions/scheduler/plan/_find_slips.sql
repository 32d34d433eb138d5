-- odc._find_slips: the jobs whose promised start a plan delays or removes. Promises are the planned starts under first
-- come, first served with a plan depth above 1, while no QOS preempts. The planned start of an array is not that of one
-- task, so arrays have no promises; nor have heterogeneous jobs (docs/decisions/0094).
-- Arguments  p_head_jobs, p_head_ats, p_start_jobs  the plan, as decide returns it;  p_without: skip these;
--            p_only: only these; null: all
-- Returns    null: none
create or replace function odc._find_slips(
    p_now timestamptz, p_head_jobs bigint[], p_head_ats timestamptz[], p_start_jobs bigint[], p_without bigint[],
    p_only bigint[])
returns bigint[]
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if not exists (select from partition as t join policy as y on y.name = t.policy
                    where y.ordering = 'fifo' and y.plan_depth > 1)
       or exists (select from qos as q where q.preempts <> '{}') then
        return null;
    end if;
    return (select array_agg(o.job_id order by o.job_id)
              from planned as o
              join pending as p on p.job_id = o.job_id and p.ready and p.tasks is null
              join shape as s on s.id = p.shape_id and s.components is null
              join partition as t on t.id = s.partition_ids[1]
              join policy as y on y.name = t.policy and y.ordering = 'fifo' and y.plan_depth > 1
              left join unnest(p_head_jobs, p_head_ats) as h (job_id, at) on h.job_id = o.job_id
             where o.planned_start_at > p_now and o.node_names <> '{}'
               and (h.at is null or h.at > o.planned_start_at + interval '1 second')
               and o.job_id <> all (coalesce(p_start_jobs, '{}')) and (p_without is null or o.job_id <> all (p_without))
               and (p_only is null or o.job_id = any (p_only)));
end;
$$;
