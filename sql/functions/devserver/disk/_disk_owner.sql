-- odc._disk_owner: the owner of the disks in a request: the actor, or a user that an operator names.
-- Raises     OD013 NotOwner, OD027 UnknownUser
create or replace function odc._disk_owner(p_actor jsonb, p_user text)
returns integer
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_uid integer;
begin
    if p_user is null or p_user = p_actor ->> 'user' then
        return (p_actor ->> 'uid')::integer;
    end if;
    perform _check_operator(p_actor, format('manage the disks of %s', p_user));
    select d.uid into v_uid from disk as d where d.user_name = p_user limit 1;
    return coalesce(v_uid, _uid_of(p_user, null));
end;
$$;
