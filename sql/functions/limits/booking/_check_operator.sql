-- odc._check_operator: require an operator.
-- Arguments  p_actor  {user, uid, operator}
--            p_what   the action, for the message: change nodes
-- Raises     OD013 NotOwner
create or replace function odc._check_operator(p_actor jsonb, p_what text)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if not coalesce((p_actor ->> 'operator')::boolean, false) then
        raise exception using errcode = 'OD013',
            message = format('user %s may not %s', p_actor ->> 'user', p_what),
            hint = 'Only operators may do that: root, the account that runs odcd, and users named with odcd up --operator USER.';
    end if;
end;
$$;
