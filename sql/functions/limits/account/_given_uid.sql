-- odc._given_uid: the uid of a user that a request names, possibly with a uid; only operators may give a uid.
-- Arguments  p_actor  {user, uid, operator}
--            p_uid    from the machine; null: it does not know the name
--            p_given  from the request; null: not given
-- Raises     OD013 NotOwner, and as _uid_of
create or replace function odc._given_uid(p_actor jsonb, p_user text, p_uid integer, p_given integer)
returns integer
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if p_given is null or coalesce((p_actor ->> 'operator')::boolean, false) then
        return _uid_of(p_user, coalesce(p_uid, p_given));
    elsif p_given = p_uid
       or exists (select from login_user where user_name = p_user and uid = p_given)
       or exists (select from association where user_name = p_user and uid = p_given) then
        return _uid_of(p_user, p_given);
    end if;
    raise exception using errcode = 'OD013',
        message = format('user %s was not added: only operators may set a uid', p_user),
        hint = 'Leave the uid out. A user who is not known yet must log in first, or be added by an operator.';
end;
$$;
