-- odc.delete_account: delete an account, by an operator, with its users' memberships and its limits. Its usage is kept
-- for accounting.
-- Returns    the account before its deletion, JSON text
-- Locks      the turn
-- Raises     OD002 UnknownAccount, OD012 WrongState, OD013 NotOwner, OD028 InUse: accounts below it, or jobs
create or replace function odc.delete_account(p_actor jsonb, p_name text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_account account;
    v_old     jsonb;
    v_below   text;
    v_jobs    bigint;
begin
    perform _check_operator(p_actor, 'delete accounts');
    perform _take_turn(p_now);
    v_account := _find_account(p_name);
    v_old := _account_json(v_account);
    if p_name = 'default' then
        raise exception using errcode = 'OD012',
            message = 'account "default" cannot be deleted: users without another account use it',
            hint = 'To prevent its use, let only members of accounts submit: odcctl account settings --enforce on.';
    end if;
    select string_agg(name, ', ' order by name) into v_below from account where parent = v_account.id and deleted_at is null;
    select count(*) into v_jobs
      from (select account_id from pending union all select account_id from running) as j where j.account_id = v_account.id;
    if v_below is not null or v_jobs > 0 then
        raise exception using errcode = 'OD028',
            message = format('account "%s" is in use: %s', p_name,
                             concat_ws('; ', 'accounts below it: ' || v_below,
                                       case when v_jobs > 0 then v_jobs || ' pending or running ' || case v_jobs when 1 then 'job' else 'jobs' end end)),
            hint = 'Delete or move them first.';
    end if;
    delete from resource_limit as r
     where (r.scope = 'account' and r.scope_id = v_account.id)
        or (r.scope = 'user' and r.scope_id in (select m.id from association as m where m.account_id = v_account.id));
    delete from association where account_id = v_account.id;
    delete from coordinator where account_id = v_account.id;
    update account set deleted_at = p_now, parent = null where id = v_account.id;
    insert into event (at, kind, actor, detail)
    values (p_now, 'account_deleted', p_actor ->> 'user', jsonb_build_object('account', p_name, 'old', v_old));
    return v_old::text;
end;
$$;
