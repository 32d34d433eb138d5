-- odc._why_holders: the running jobs that must end before a job can start on given nodes, as few as possible: if any
-- one of them stayed, its node would not fit the job.
-- Arguments  p_node_names  the nodes it is to have;  p_by  only jobs whose limit ends by then; null: any
--            p_without     jobs that are already named
-- Returns    per job and node the amounts it uses there and when its time limit ends, soonest first
create or replace function odc._why_holders(
    p_job_id bigint, p_node_names text[], p_by timestamptz, p_without bigint[])
returns table (job_id bigint, node text, gpus integer, cpus integer, until timestamptz)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_shape shape;
    v_held  record;
    v_node  integer;
    v_gpus integer;  v_cpus integer;  v_mem integer;    -- free on the node if all these jobs were gone
begin
    select s.* into v_shape from pending as p join shape as s on s.id = p.shape_id where p.job_id = p_job_id;
    -- The last to end is removed from the list first, if the node fits without its share. All nodes are read at once,
    -- because allocation has no index on its nodes.
    for v_held in
        with wanted as materialized (
            select n.id, n.name, n.gpus, n.cpus, n.mem_mib from node as n where n.name = any (p_node_names)
        ), held as materialized (
            select a.node_id, a.job_id, a.gpus, a.cpus, a.mem_mib, a.ends_at, p_by is null or a.ends_at <= p_by as ends
              from allocation as a where a.node_id = any (array(select id from wanted))
        ), total as (
            select h.node_id, sum(h.gpus) as gpus, sum(h.cpus) as cpus, sum(h.mem_mib) as mem_mib
              from held as h where h.ends or h.job_id = any (p_without) group by h.node_id
        )
        select n.id, n.name, h.job_id, h.gpus, h.cpus, h.mem_mib, h.ends_at,
               f.gpus + coalesce(t.gpus, 0) - case when v_shape.exclusive then n.gpus else v_shape.gpus_per_node end as rest_gpus,
               f.cpus + coalesce(t.cpus, 0) - case when v_shape.exclusive then n.cpus else v_shape.cpus_per_node end as rest_cpus,
               f.mem_mib + coalesce(t.mem_mib, 0)
                   - case when v_shape.exclusive then n.mem_mib else v_shape.mem_per_node_mib end as rest_mem
          from wanted as n
          join node_free as f on f.node_id = n.id
          join held as h on h.node_id = n.id and h.ends and h.job_id <> all (coalesce(p_without, '{}'))
          left join total as t on t.node_id = n.id
         order by n.id, h.ends_at desc, h.job_id desc
    loop
        if v_node is distinct from v_held.id then
            v_node := v_held.id;
            v_gpus := v_held.rest_gpus;  v_cpus := v_held.rest_cpus;  v_mem := v_held.rest_mem;
        end if;
        if v_held.gpus <= v_gpus and v_held.cpus <= v_cpus and v_held.mem_mib <= v_mem then
            v_gpus := v_gpus - v_held.gpus;  v_cpus := v_cpus - v_held.cpus;  v_mem := v_mem - v_held.mem_mib;
        else
            job_id := v_held.job_id;  node := v_held.name;  gpus := v_held.gpus;  cpus := v_held.cpus;
            until := v_held.ends_at;
            return next;
        end if;
    end loop;
end;
$$;
