-- odc._node_notices: why the nodes of active reservations may become unavailable: they are drained (by an operator, by
-- quarantine, or by the executor's platform, as after a spot notice), or have maintenance before the reservation ends.
-- Returns    a row per reservation with such a node; until_at: when the first of its nodes may be gone; null: not known
create or replace function odc._node_notices(p_now timestamptz)
returns table (job_id bigint, text text, until_at timestamptz)
language sql stable as $$
    with held as materialized (
        select v.job_id, v.expires_at, a.node_id
          from odc.reservation as v
          join odc.running as r on r.job_id = v.job_id and r.state = 'RUNNING' and r.intent is null
          join odc.allocation as a on a.job_id = v.job_id
         where v.launched_at is not null
    ), maintenance as materialized (
        select w.node_id, w.starts_at, w.ends_at, b.name
          from odc._plan_bookings(p_now) as w
          join odc.booking as b on b.id = w.booking_id and b.kind = 'maintenance'
         where exists (select from held)
    ), found as (
        select h.job_id, n.name as node, format('%s is drained%s', n.name, ': ' || n.reason) as text,
               -- EC2 takes a spot instance two minutes after its notice.
               case when n.reason ~* '\mspot' then n.state_at + interval '2 minutes' end as until_at
          from held as h
          join odc.node as n on n.id = h.node_id and n.state = 'DRAIN'
        union all
        select h.job_id, n.name, format('%s has maintenance "%s" from %s', n.name, m.name, odc._iso(m.starts_at)), m.starts_at
          from held as h
          join odc.node as n on n.id = h.node_id
          join maintenance as m on m.node_id = h.node_id and m.starts_at < h.expires_at and m.ends_at > p_now
    )
    select f.job_id, string_agg(f.text, '; ' order by f.node, f.until_at), min(f.until_at)
      from found as f group by f.job_id
$$;
