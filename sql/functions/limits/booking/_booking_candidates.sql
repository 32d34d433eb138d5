-- odc._booking_candidates: the nodes that a booking may choose from, and any obstacle to each.
-- Arguments  p_booking  need not be in the table
-- Returns    per node: up: may start jobs; taken_by, taken_from, taken_to: another booking that has it at the same
--            time; busy_job, busy_until: the running job that reaches farthest into the next window; jobs, planned:
--            how many jobs run on it and how many are planned there; domain: where gangs of whole nodes must stay together
create or replace function odc._booking_candidates(p_booking odc.booking, p_now timestamptz)
returns table (
    node_id integer, name text, up boolean, taken_by text, taken_from timestamptz, taken_to timestamptz,
    busy_job bigint, busy_until timestamptz, jobs bigint, planned bigint, domain text)
language sql stable as $$
    select n.id, n.name, n.state = 'UP', c.name, c.starts_at, c.ends_at, r.job_id, r.ends_at,
           coalesce(f.jobs, 0), coalesce(p.jobs, 0),
           case when t.efa_per_node > 0 then coalesce(n.efa_domain, n.zone) end
      from odc.node as n
      join odc.gpu_type as t on t.name = n.gpu_type
      left join odc.node_free as f on f.node_id = n.id
     cross join lateral (
           select greatest(p_now, w.starts_at) as starts_at from odc._booking_window(p_booking, p_now) as w) as w
      left join (
           select distinct on (m.node_id) m.node_id, c.name, c.starts_at, c.ends_at
             from odc._booking_clashes(p_booking, p_now) as c
             join odc.booking_node as m on m.booking_id = c.booking_id
            order by m.node_id, c.starts_at, c.booking_id) as c on c.node_id = n.id
      left join lateral (
           select a.job_id, a.ends_at
             from odc.allocation as a
             join odc.running as j on j.job_id = a.job_id
             join odc.shape as s on s.id = j.shape_id
            where a.node_id = n.id and a.ends_at > w.starts_at and (s.booking_id = p_booking.id) is not true
            order by a.ends_at desc, a.job_id limit 1) as r on true
     cross join lateral (select count(*) as jobs from odc.planned as p where n.name = any (p.node_names)) as p
     where not odc._is_gone(n)
       and (p_booking.node_list is null or n.name = any (p_booking.node_list))
       and (p_booking.gpu_type is null or n.gpu_type = p_booking.gpu_type)
       and (p_booking.partition_id is null
            or exists (select from odc.partition as pt
                        where pt.id = p_booking.partition_id
                          and (pt.all_nodes or exists (
                              select from odc.partition_node as m where m.partition_id = pt.id and m.node_id = n.id))))
     order by n.id
$$;
