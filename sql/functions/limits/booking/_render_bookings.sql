-- odc._render_bookings: bookings as the JSON array of the API, ordered by start.
-- Returns    state: at p_now, even before a sweep has updated it; starts_at and ends_at: of the current or next
--            occurrence; of a booking that is over, as it was created
create or replace function odc._render_bookings(p_ids integer[], p_now timestamptz)
returns json
language sql stable as $$
    select coalesce(json_agg(row_to_json(x) order by x.starts_at, x.id), '[]')
      from (
          select b.id, b.name, b.kind,
                 case when b.state not in ('PLANNED', 'ACTIVE') then b.state
                      when w.starts_at is null then 'ENDED' when w.starts_at <= p_now then 'ACTIVE' else 'PLANNED'
                 end as state,
                 odc._iso(b.state_at) as state_at,
                 odc._iso(coalesce(w.starts_at, b.starts_at)) as starts_at,
                 odc._iso(coalesce(w.ends_at, b.starts_at + make_interval(secs => b.duration_s))) as ends_at,
                 b.duration_s, b.repeats, odc._iso(b.repeats_until) as until, b.zone,
                 coalesce(b.node_list, '{}') as node_list, b.gpu_type, p.name as partition, b.all_nodes, b.node_count,
                 array(select n.name from odc.booking_node as m join odc.node as n on n.id = m.node_id
                        where m.booking_id = b.id order by length(n.name), n.name) as node_names,
                 b.user_names as users,
                 array(select a.name from odc.account as a where a.id = any (b.account_ids) order by a.name) as accounts,
                 array(select q.job_id from (
                           select r.job_id, r.shape_id from odc.running as r
                            union all
                           select q.job_id, q.shape_id from odc.pending as q) as q
                         join odc.shape as s on s.id = q.shape_id
                        where s.booking_id = b.id order by q.job_id limit 1000) as jobs,
                 b.ignore_running, b.comment, b.reason, b.created_by, odc._iso(b.created_at) as created_at
            from odc.booking as b
            left join odc.partition as p on p.id = b.partition_id
            left join lateral odc._booking_window(b, p_now) as w on b.state in ('PLANNED', 'ACTIVE')
           where b.id = any (p_ids)
      ) as x
$$;
