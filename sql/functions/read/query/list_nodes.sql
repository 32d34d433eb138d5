-- odc.list_nodes: every node with its use, by name, without nodes that an elastic group has removed.
-- Arguments  p_now  a job past its end is expected to end now
--            p_actor  as for _booking_label
-- Returns    a JSON array; state in sinfo's words; free_at: when the time limits of all its jobs are over;
--            booking and next_booking: {id, name, kind, starts_at, ends_at} of its current and its next booking
create or replace function odc.list_nodes(p_now timestamptz, p_actor jsonb default null)
returns text
language sql stable as $$
    select coalesce(json_agg(row_to_json(x)), '[]')::text
      from (
          select n.name, n.gpu_type,
                 case when n.state = 'DOWN' then 'DOWN'
                      when n.state = 'DRAIN' then case when f.jobs > 0 then 'DRAINING' else 'DRAIN' end
                      when f.jobs = 0 and n.foreign_cpus = 0 and n.foreign_gpu_mask = 0 and n.foreign_mem_mib = 0 then 'IDLE'
                      when f.cpus = 0 or f.mem_mib = 0 or n.gpus > 0 and f.gpus = 0 then 'ALLOCATED'
                      else 'MIXED' end as state,
                 n.gpus, n.gpus - f.gpus as gpus_used,
                 n.cpus, n.cpus - f.cpus as cpus_used,
                 n.mem_mib, n.mem_mib - f.mem_mib as mem_used_mib,
                 n.zone, n.efa_domain, n.topology, n.features,
                 array(select p.name from odc.partition as p
                        where p.all_nodes or exists (select from odc.partition_node as m
                                                      where m.partition_id = p.id and m.node_id = n.id)
                        order by p.name) as partitions,
                 n.reason, case when n.state <> 'UP' then n.reason_by end as reason_by, odc._iso(n.state_at) as state_at, n.declared,
                 coalesce(a.jobs, '{}') as jobs,
                 case when a.jobs is not null then odc._iso(greatest(a.free_at, p_now)) end as free_at,
                 bk.booking, bk.next_booking
            from odc.node as n
            join odc.node_free as f on f.node_id = n.id
            left join (
                select node_id, array_agg(distinct job_id order by job_id) as jobs,
                       max(ends_at) as free_at
                  from odc.allocation
                 group by node_id
            ) as a on a.node_id = n.id
            left join odc._node_bookings(p_now, p_actor) as bk on bk.node_id = n.id
           where n.state <> 'DOWN' or not exists (select from odc.elastic_gone as e where e.node_id = n.id)
           order by n.name
      ) as x
$$;
