-- odc.list_bookings: the bookings that who asks may see: an operator all, others those they own.
-- Arguments  p_actor  {user, uid, operator}
--            p_all    those that are over, too: the newest 1000
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
