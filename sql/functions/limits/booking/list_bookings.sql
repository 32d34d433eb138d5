-- odc.list_bookings: the bookings that the caller may see: all for an operator, otherwise those the caller owns.
-- Arguments  p_actor  {user, uid, operator}
--            p_all    include the newest 1000 that are over
-- Returns    a JSON array as text
create or replace function odc.list_bookings(p_actor jsonb, p_all boolean, p_now timestamptz)
returns text
language sql stable as $$
    select odc._render_bookings(array(
        select b.id from odc.booking as b
         where (p_all or b.state in ('PLANNED', 'ACTIVE'))
           and ((p_actor ->> 'operator')::boolean
                or odc._owns_booking(b, (p_actor ->> 'uid')::integer, null))
         order by b.id desc limit 1000), p_now)::text
$$;
