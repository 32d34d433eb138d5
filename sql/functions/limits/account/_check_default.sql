-- odc._check_default: refuse to change another user's default account. Operators may change all of them.
-- Arguments  p_actor  {user, uid, operator}
-- Raises     OD013 NotOwner
create or replace function odc._check_default(p_actor jsonb, p_user text, p_uid integer)
returns void
language plpgsql immutable set search_path = odc, pg_temp as $$
begin
    if not coalesce((p_actor ->> 'operator')::boolean, false) and (p_actor ->> 'uid')::integer <> p_uid then
        raise exception using errcode = 'OD013',
            message = format('the default account of user %s was not changed: only operators may do that', p_user),
            hint = 'Leave the default out. The user can name the account with each job: --account NAME.';
    end if;
end;
$$;
