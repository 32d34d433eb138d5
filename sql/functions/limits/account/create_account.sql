-- odc.create_account: create an account, by an operator. A deleted account of that name is restored with default values.
-- Arguments  p_actor        {user, uid, operator}
--            p_ask          as _write_account
--            p_key, p_digest  idempotency key, and a digest that identifies its request; null: none
-- Returns    the account as JSON text
-- Locks      the turn; idempotency by (uid, key)
-- Raises     OD010 BadRequest, OD013 NotOwner, OD014 KeyReused, OD028 InUse, and what _write_account raises
create or replace function odc.create_account(
    p_actor jsonb, p_name text, p_ask jsonb, p_key text, p_digest text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_id integer;
begin
    perform _check_operator(p_actor, 'create accounts');
    perform _take_turn(p_now);
    if not _repeats_request(p_actor, p_key, p_digest, p_now) then
        perform _check_new_name('account', p_name);
        insert into account as a (name) values (p_name)
        on conflict (name) do update
           set deleted_at = null, parent = null, description = null, organisation = null, shares = 1,
               default_qos_id = null, qos_ids = null
         where a.deleted_at is not null
        returning id into v_id;
        if v_id is null then
            raise exception using errcode = 'OD028',
                message = format('account "%s" already exists', p_name), hint = 'Edit it, or choose another name.';
        end if;
        perform _write_account(v_id, p_ask);
        insert into event (at, kind, actor, detail)
        values (p_now, 'account_created', p_actor ->> 'user', jsonb_build_object('account', p_name, 'new', p_ask));
    end if;
    return _account_json(_find_account(p_name))::text;
end;
$$;
