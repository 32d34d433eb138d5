-- odc.seen_bookings: which of these bookings a user may see, past ones included.
-- Arguments  p_actor  {user, uid, operator}
create or replace function odc.seen_bookings(p_actor jsonb, p_ids integer[])
returns setof integer
language sql stable as $$
    select b.id from odc.booking as b where b.id = any (p_ids) and odc._sees_booking(b, p_actor)
$$;
