-- odc.list_availability: the GPUs of each type that nodes have, and how many jobs wait for them.
-- Arguments  p_actor  as for _booking_label
-- Returns    a JSON array by type: {gpu_type, label, gpu_mem_mib, gpus_per_node, cpus_per_node, mem_per_node_mib (of its smallest
--            node), nodes, nodes_up, free_nodes, total, free, max_on_one_node,
--            max_reservable, running, queued}. total, free: GPUs of nodes that are up; for types without GPUs, nodes.
--            max_reservable: the most that one reservation could get now, several whole nodes or part of one;
--            maintenance: why and until when all its nodes are booked
create or replace function odc.list_availability(p_now timestamptz, p_actor jsonb default null)
returns text
language sql stable as $$
    with place as (
        select n.gpu_type, n.gpus, n.cpus, n.mem_mib, not odc._is_gone(n) as present, f.up, case when f.up then f.gpus end as free, f.up and f.jobs = 0 and f.gpus = n.gpus and n.foreign_cpus = 0 as idle
          from odc.node as n join odc.node_free as f on f.node_id = n.id
         -- An elastic group without nodes may get some again, so its type stays in the list.
         where not odc._is_gone(n) or n.gpu_type in (select e.gpu_type from odc.elastic_group as e)
    ), closed as (
        -- A booking that has all nodes of a type now: no other job gets any.
        select distinct on (p.gpu_type) p.gpu_type,
               format('%s, until %s', coalesce(case when b.kind = 'maintenance' or odc._sees_booking(b, p_actor) then b.comment end,
                                               odc._booking_label(b, p_actor)), odc._iso(w.ends_at)) as text
          from (select distinct n.gpu_type from odc.node as n join odc.node_free as f on f.node_id = n.id and f.up) as p
         cross join lateral (select distinct o.booking_id, o.ends_at from odc._plan_bookings(p_now) as o where o.starts_at <= p_now) as w
          join odc.booking as b on b.id = w.booking_id
         where not exists (select from odc.node as n join odc.node_free as f on f.node_id = n.id and f.up
                             left join odc.booking_node as m on m.booking_id = b.id and m.node_id = n.id
                            where n.gpu_type = p.gpu_type and m.node_id is null)
         order by p.gpu_type, w.ends_at desc, b.id
    ), type as (
        select p.gpu_type, max(p.gpus) as gpus_per_node, min(p.cpus) as cpus, min(p.mem_mib) as mem_mib, count(*) filter (where p.present) as nodes, count(*) filter (where p.up) as nodes_up,
               count(*) filter (where p.idle) as free_nodes, coalesce(sum(p.gpus) filter (where p.up), 0) as gpus,
               coalesce(sum(p.free), 0) as free, coalesce(max(p.free), 0) as max_on_one_node,
               coalesce((select sum(w.gpus) from (select q.gpus from place as q where q.gpu_type = p.gpu_type and q.idle
                                                   order by q.gpus desc limit 6) as w), 0) as whole
          from place as p group by p.gpu_type
    )
    select coalesce(json_agg(json_build_object(
               'gpu_type', t.gpu_type, 'label', g.label, 'gpu_mem_mib', g.gpu_mem_mib, 'gpus_per_node', t.gpus_per_node, 'cpus_per_node', t.cpus, 'mem_per_node_mib', t.mem_mib,
               'nodes', t.nodes, 'nodes_up', t.nodes_up, 'free_nodes', t.free_nodes,
               'total', case when t.gpus_per_node > 0 then t.gpus else t.nodes_up end,
               'free', case when t.gpus_per_node > 0 then t.free else t.free_nodes end,
               'max_on_one_node', t.max_on_one_node, 'max_reservable', greatest(t.max_on_one_node, t.whole),
               'running', (select count(distinct a.job_id) from odc.allocation as a join odc.node as n on n.id = a.node_id
                            where n.gpu_type = t.gpu_type),
               'queued', (select coalesce(sum(p.open_count), 0) from odc.pending as p join odc.shape as s on s.id = p.shape_id
                           where p.ready and (s.gpu_type = t.gpu_type or s.gpu_type is null and s.gpus_per_node > 0 and t.gpus_per_node > 0)),
               'maintenance', (select c.text from closed as c where c.gpu_type = t.gpu_type))
               order by g.gpu_mem_mib desc nulls last, t.gpu_type), '[]')::text
      from type as t join odc.gpu_type as g on g.name = t.gpu_type
$$;
