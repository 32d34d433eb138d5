-- odc.measure_outbox: notifications that wait, and those that were dropped; see sql/functions/cluster/measure/README.md for the
-- form.
create or replace function odc.measure_outbox(p_now timestamptz)
returns table (metric text, labels text[], value double precision)
language sql stable as $$
    with waiting as materialized (
        select c.channel, count(o.id) as n, min(o.created_at) as since
          from (values ('mail'), ('webhook')) as c (channel)
          left join odc.outbox as o on o.channel = c.channel and o.next_at is not null
         group by c.channel
    )
    select 'odcd_notifications_waiting', array[w.channel], w.n::double precision from waiting as w
     union all
    select 'odcd_notification_oldest_seconds', array[w.channel],
           coalesce(extract(epoch from greatest(p_now - w.since, interval '0')), 0)::double precision from waiting as w
     union all
    select 'odcd_notifications_dropped_total', '{}', s.dropped::double precision from odc.notify_state as s
$$;
