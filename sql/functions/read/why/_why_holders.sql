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
    v_node  record;
    v_held  record;
    v_gpus integer;  v_cpus integer;  v_mem integer;    -- free on the node if all these jobs were gone
begin
    select s.* into v_shape from pending as p join shape as s on s.id = p.shape_id where p.job_id = p_job_id;
    for v_node in
        select n.id, n.name, n.gpus, n.cpus, n.mem_mib, f.gpus as free_gpus, f.cpus as free_cpus, f.mem_mib as free_mem
          from node as n join node_free as f on f.node_id = n.id
         where n.name = any (p_node_names)
         order by n.id
    loop
        select v_node.free_gpus + coalesce(sum(a.gpus), 0) - case when v_shape.exclusive then v_node.gpus else v_shape.gpus_per_node end,
               v_node.free_cpus + coalesce(sum(a.cpus), 0) - case when v_shape.exclusive then v_node.cpus else v_shape.cpus_per_node end,
               v_node.free_mem + coalesce(sum(a.mem_mib), 0) - case when v_shape.exclusive then v_node.mem_mib else v_shape.mem_per_node_mib end
          into v_gpus, v_cpus, v_mem
          from allocation as a
         where a.node_id = v_node.id and (p_by is null or a.ends_at <= p_by or a.job_id = any (p_without));
        -- The last to end is removed from the list first, if the node fits without its share.
        for v_held in
            select a.job_id, a.gpus, a.cpus, a.mem_mib, a.ends_at
              from allocation as a
             where a.node_id = v_node.id and (p_by is null or a.ends_at <= p_by)
               and a.job_id <> all (coalesce(p_without, '{}'))
             order by a.ends_at desc, a.job_id desc
        loop
            if v_held.gpus <= v_gpus and v_held.cpus <= v_cpus and v_held.mem_mib <= v_mem then
                v_gpus := v_gpus - v_held.gpus;  v_cpus := v_cpus - v_held.cpus;  v_mem := v_mem - v_held.mem_mib;
            else
                job_id := v_held.job_id;  node := v_node.name;  gpus := v_held.gpus;  cpus := v_held.cpus;
                until := v_held.ends_at;
                return next;
            end if;
        end loop;
    end loop;
end;
$$;
