-- odc._check_coordinator: require an operator, or a coordinator of this account or of one above it.
-- Raises     OD013 NotOwner
create or replace function odc._check_coordinator(p_actor jsonb, p_account_id integer)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if coalesce((p_actor ->> 'operator')::boolean, false)
       or exists (select from coordinator as c join _account_lines() as l on l.ancestor_id = c.account_id
                   where l.account_id = p_account_id and c.uid = (p_actor ->> 'uid')::integer) then
        return;
    end if;
    raise exception using errcode = 'OD013',
        message = format('user %s may not change the users of account "%s"', p_actor ->> 'user',
                         (select name from account where id = p_account_id)),
        hint = coalesce((select format('Operators and its coordinators may do that: %s.', string_agg(distinct c.user_name, ', '))
                           from coordinator as c join _account_lines() as l on l.ancestor_id = c.account_id
                          where l.account_id = p_account_id having count(*) > 0),
                        'Only operators may do that, because the account has no coordinators.');
end;
$$;
