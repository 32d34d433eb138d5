-- odc.edit_account: change an account, by an operator.
-- Arguments  p_actor  {user, uid, operator}
--            p_ask    as _write_account
-- Returns    the account as JSON text
-- Locks      the turn
-- Raises     OD013 NotOwner, and what _write_account raises
create or replace function odc.edit_account(p_actor jsonb, p_name text, p_ask jsonb, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_account account;
    v_old     jsonb;
begin
    perform _check_operator(p_actor, 'change accounts');
    perform _take_turn(p_now);
    v_account := _find_account(p_name);
    v_old := _account_json(v_account);
    perform _write_account(v_account.id, p_ask);
    insert into event (at, kind, actor, detail)
    values (p_now, 'account_edited', p_actor ->> 'user',
            jsonb_build_object('account', p_name, 'old', _of_keys(v_old, p_ask), 'new', p_ask));
    perform _wake();
    return _account_json(_find_account(p_name))::text;
end;
$$;
