-- odc._booking_facts: a booking as events record it.
create or replace function odc._booking_facts(p_booking odc.booking)
returns jsonb
language sql stable as $$
    select jsonb_strip_nulls(jsonb_build_object(
        'booking_id', p_booking.id, 'name', p_booking.name, 'kind', p_booking.kind,
        'starts_at', odc._iso(p_booking.starts_at), 'duration_s', p_booking.duration_s,
        'repeats', nullif(p_booking.repeats, 'none'), 'until', odc._iso(p_booking.repeats_until),
        'zone', p_booking.zone,
        'users', nullif(p_booking.user_names, '{}'),
        'accounts', (select jsonb_agg(a.name order by a.name) from odc.account as a
                      where a.id = any (p_booking.account_ids)),
        'nodes', (select odc._fold_names(array_agg(n.name))
                    from odc.booking_node as m join odc.node as n on n.id = m.node_id
                   where m.booking_id = p_booking.id)))
$$;
