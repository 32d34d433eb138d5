-- odc.map_nodes: every node with the users of its GPUs, by type and name.
-- Returns    a row per node: its name, its GPU type, and a JSON text {name, gpu_type, state (UP, DRAIN, DOWN), reason, gpus,
--            cpus, cpus_used, mem_mib, mem_used_mib, jobs (on it), free_at (when the time limits of all its jobs are
--            over; null: it has no jobs, or one without a limit), foreign (GPUs used by software that odc does not run, a mask), booking,
--            next_booking, held: [[job_id, user, name, mask], ...]}; bit n of a mask is GPU n
create or replace function odc.map_nodes(p_now timestamptz)
returns table (name text, gpu_type text, body text)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    return query
    with held as (
        -- Sorted once, and without keys: with thousands of jobs, these are most of the cost.
        select a.node_id, json_agg(json_build_array(a.job_id, a.user_name, a.name, a.gpu_mask)) as jobs,
               max(a.ends_at) as free_at
          from (select al.node_id, al.job_id, al.gpu_mask, al.ends_at, j.user_name, j.name
                  from allocation as al
                  join job as j on j.id = al.job_id
                 order by al.node_id, al.gpu_mask, al.job_id) as a
         group by a.node_id
    )
    select n.name, n.gpu_type,
           json_build_object(
               'name', n.name, 'gpu_type', n.gpu_type, 'state', n.state, 'reason', n.reason, 'gpus', n.gpus,
               'cpus', n.cpus, 'cpus_used', n.cpus - f.cpus, 'mem_mib', n.mem_mib,
               'mem_used_mib', n.mem_mib - f.mem_mib, 'jobs', f.jobs, 'free_at', _iso(h.free_at), 'foreign', n.foreign_gpu_mask,
               'booking', bk.booking, 'next_booking', bk.next_booking, 'held', coalesce(h.jobs, '[]'))::text
      from node as n
      join node_free as f on f.node_id = n.id
      left join held as h on h.node_id = n.id
      left join _node_bookings(p_now) as bk on bk.node_id = n.id
     where not _is_gone(n)
     order by n.gpu_type, _name_order(n.name), n.name;
end;
$$;
