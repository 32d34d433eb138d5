-- odc.remove_member: remove a user from an account, by an operator or a coordinator. Their jobs there stay.
-- Arguments  p_partition  the membership for this partition only; null: all of the user's memberships there
-- Returns    {"user", "account"} as JSON text
-- Locks      the turn
-- Raises     OD002 UnknownAccount, OD013 NotOwner, OD027 UnknownUser
create or replace function odc.remove_member(
    p_actor jsonb, p_account text, p_user text, p_partition text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_account account;
    v_gone    integer[];
    v_uid     integer;
begin
    perform _take_turn(p_now);
    v_account := _find_account(p_account);
    perform _check_coordinator(p_actor, v_account.id);
    with gone as (
        delete from association as m
         where m.account_id = v_account.id
           and m.uid = (select min(o.uid) from association as o where o.account_id = v_account.id and o.user_name = p_user)
           and (p_partition is null or m.partition_id = (select id from partition where name = p_partition))
        returning m.id, m.uid
    )
    select array_agg(id), min(uid) into v_gone, v_uid from gone;
    if v_gone is null then
        raise exception using errcode = 'OD027',
            message = format('user %s is not a member of account "%s"%s', p_user, p_account, coalesce(' in partition ' || p_partition, '')),
            hint = '`odcctl user list` shows the members of each account.';
    end if;
    delete from resource_limit as r where r.scope = 'user' and r.scope_id = any (v_gone);
    update association set is_default = true
     where id = (select min(id) from association where uid = v_uid)
       and not exists (select from association as m where m.uid = v_uid and m.is_default);
    insert into event (at, kind, actor, detail)
    values (p_now, 'user_removed', p_actor ->> 'user',
            jsonb_strip_nulls(jsonb_build_object('user', p_user, 'account', p_account, 'partition', p_partition)));
    return json_build_object('user', p_user, 'account', p_account)::text;
end;
$$;
