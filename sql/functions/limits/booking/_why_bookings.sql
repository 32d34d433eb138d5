-- odc._why_bookings: the bookings that keep a pending job from nodes it could run on.
-- For a job outside any booking: windows that are current, or that its time limit reaches into. The start is the moment
-- when each node has what it needs: now, or when all jobs there have ended. For a job in a booking: why it does not
-- start now.
-- Arguments  p_actor  as for _booking_label. A job's own booking is always named: the job's description names it, too
-- Returns    a row per booking and window, soonest first, at most 16. until: when the window ends; for a job's own
--            booking when it begins. node: null if there are several, which the text names
create or replace function odc._why_bookings(p_job_id bigint, p_now timestamptz, p_actor jsonb default null)
returns table (cause text, text text, booking_id integer, node text, until timestamptz)
language sql stable as $$
    with asked as materialized (
        select p.time_limit_s, s as shape,
               case when p.time_limit_s < 2147483647 then make_interval(secs => p.time_limit_s) end as length
          from odc.pending as p
          join odc.shape as s on s.id = p.shape_id
         where p.job_id = p_job_id
           and exists (select from odc.booking as b where b.state in ('PLANNED', 'ACTIVE'))
    ), own as (
        select b.id, b.name, w.starts_at, w.ends_at, a.time_limit_s,
               extract(epoch from w.ends_at - greatest(w.starts_at, p_now))::integer as left_s
          from asked as a
          join odc.booking as b on b.id = (a.shape).booking_id and b.state in ('PLANNED', 'ACTIVE')
         cross join lateral odc._booking_window(b, p_now) as w
    ), usable as (
        select n.id, n.name, a.length,
               case when f.gpus >= (a.shape).gpus_per_node and f.cpus >= (a.shape).cpus_per_node
                         and f.mem_mib >= (a.shape).mem_per_node_mib and (f.jobs = 0 or not (a.shape).exclusive)
                    then p_now
                    else greatest(p_now, (select max(l.ends_at) from odc.allocation as l where l.node_id = n.id)) end as free_at
          from asked as a
         cross join odc.node_free as f
          join odc.node_group as g on g.id = f.group_id
          join odc.node as n on n.id = f.node_id
         where f.up and (a.shape).booking_id is null
           and (a.shape).partition_ids && g.partition_ids
           and ((a.shape).gpu_type is null or g.gpu_type = (a.shape).gpu_type)
           and g.gpus >= (a.shape).gpus_per_node and g.cpus >= (a.shape).cpus_per_node
           and g.mem_mib >= (a.shape).mem_per_node_mib
           and odc._matches_features((a.shape).constraint_expr, g.features)
           and ((a.shape).node_list is null or n.name = any ((a.shape).node_list))
           and ((a.shape).exclude_nodes is null or n.name <> all ((a.shape).exclude_nodes))
    ), closed as (
        select distinct on (u.id) u.id, u.name, u.free_at, u.length, w.booking_id, w.starts_at, w.ends_at
          from usable as u
          join odc._plan_bookings(p_now) as w on w.node_id = u.id
         where w.ends_at > u.free_at and (u.length is null or w.starts_at < u.free_at + u.length)
         order by u.id, w.starts_at, w.booking_id
    ), window_of as (
        select c.booking_id, c.starts_at, c.ends_at, count(*) as nodes, odc._fold_names(array_agg(c.name)) as names,
               min(c.free_at) as free_at, min(c.length) as length
          from closed as c
         group by c.booking_id, c.starts_at, c.ends_at
    )
    (select 'booking',
           format('%s %s %s booked %s', case when w.nodes = 1 then 'node' else 'nodes' end, w.names,
                  case when w.nodes = 1 then 'is' else 'are' end,
                  case b.kind when 'maintenance' then format('for maintenance ("%s")', odc._booking_label(b, p_actor))
                              else format('by "%s"', odc._booking_label(b, p_actor)) end)
           || case when w.starts_at <= w.free_at then format(' until %s', odc._iso(w.ends_at))
                   else format(' from %s to %s; ', odc._iso(w.starts_at), odc._iso(w.ends_at))
                        || coalesce(format('this job could run until %s', odc._iso(w.free_at + w.length)), 'this job has no time limit')
                        || format('; a time limit of %s or less would fit',
                                  odc._duration(extract(epoch from w.starts_at - w.free_at)::integer)) end,
           b.id, case when w.nodes = 1 then w.names end, w.ends_at
      from (select * from window_of order by starts_at, booking_id limit 16) as w
      join odc.booking as b on b.id = w.booking_id
     order by w.starts_at, w.booking_id)
    union all
    select 'booking',
           case when o.starts_at > p_now then format('its booking "%s" begins at %s', o.name, odc._iso(o.starts_at))
                when o.left_s < o.time_limit_s
                then format('its booking "%s" ends at %s, too soon for its time limit of %s', o.name, odc._iso(o.ends_at),
                            odc._duration(o.time_limit_s)) end,
           o.id, null, case when o.starts_at > p_now then o.starts_at end
      from own as o
     where o.starts_at > p_now or o.left_s < o.time_limit_s
$$;
