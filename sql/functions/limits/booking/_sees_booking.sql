-- odc._sees_booking: whether a user may see a booking: operators see all, other users those that their jobs may run in.
-- Arguments  p_actor  {user, uid, operator}; null: a user who may not see any
create or replace function odc._sees_booking(p_booking odc.booking, p_actor jsonb)
returns boolean
language sql stable as $$
    select case when p_actor is null then false
                when coalesce((p_actor ->> 'operator')::boolean, false) then true
                else odc._owns_booking(p_booking, (p_actor ->> 'uid')::integer, null) end
$$;
