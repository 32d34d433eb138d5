-- odc.set_coordinator: allow or forbid a user to manage the users of an account and of those below it; by an operator.
-- Arguments  p_uid  of the user, from the machine; null: it does not know the name
--            p_on   or off
-- Returns    the account as JSON text
-- Locks      the turn; login_user, share: a first login chooses its uid before or after this
-- Raises     OD002 UnknownAccount, OD013 NotOwner, OD027 UnknownUser, OD028 InUse: as _uid_of and _check_identity
create or replace function odc.set_coordinator(
    p_actor jsonb, p_account text, p_user text, p_uid integer, p_on boolean, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_account account;
    v_changed integer;
    v_uid     integer;
begin
    perform _check_operator(p_actor, 'appoint coordinators');
    perform _take_turn(p_now);
    v_account := _find_account(p_account);
    if p_on then
        lock table login_user in share mode;
        v_uid := _uid_of(p_user, p_uid);
        perform _check_identity(p_actor, p_user, v_uid);
        insert into coordinator (account_id, uid, user_name) values (v_account.id, v_uid, p_user)
        on conflict do nothing;
    else
        delete from coordinator where account_id = v_account.id and user_name = p_user;
    end if;
    get diagnostics v_changed = row_count;
    if v_changed > 0 then
        insert into event (at, kind, actor, detail)
        values (p_now, case when p_on then 'coordinator_added' else 'coordinator_removed' end, p_actor ->> 'user',
                jsonb_build_object('user', p_user, 'account', p_account));
    elsif not p_on then
        raise exception using errcode = 'OD027',
            message = format('user %s is not a coordinator of account "%s"', p_user, p_account),
            hint = '`odcctl account list` shows the coordinators.';
    end if;
    return _account_json(v_account)::text;
end;
$$;
