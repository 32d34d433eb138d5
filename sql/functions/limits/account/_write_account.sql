-- odc._write_account: apply the changes of a request to an account; the rest stays.
-- Arguments  p_ask  any of parent (null: none), description, organisation, shares, default_qos, qos (null: as the
--                   account above), limits
-- Raises     OD002 UnknownAccount, OD004 UnknownQos, OD010 BadRequest: a cycle, a value out of range
create or replace function odc._write_account(p_id integer, p_ask jsonb)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_name   text := (select name from account where id = p_id);
    v_parent account;
begin
    if p_ask ->> 'parent' is not null then
        v_parent := _find_account(p_ask ->> 'parent');
        if exists (select from _account_lines() as l where l.account_id = v_parent.id and l.ancestor_id = p_id) then
            raise exception using errcode = 'OD010',
                message = case when v_parent.id = p_id then format('account "%s" cannot be below itself', v_name)
                               else format('account "%s" cannot be below "%s", which is below it', v_name, v_parent.name) end,
                hint = 'Accounts form a tree: choose another account above it.';
        end if;
    end if;
    update account as a
       set parent = case when p_ask ? 'parent' then v_parent.id else a.parent end,
           description = case when p_ask ? 'description' then p_ask ->> 'description' else a.description end,
           organisation = case when p_ask ? 'organisation' then p_ask ->> 'organisation' else a.organisation end,
           shares = coalesce((p_ask ->> 'shares')::integer, a.shares),
           default_qos_id = case when p_ask ? 'default_qos'
                                 then (_find_qos(array_remove(array[p_ask ->> 'default_qos'], null)))[1]
                                 else a.default_qos_id end,
           qos_ids = case when p_ask ? 'qos' then _find_qos(_words(nullif(p_ask -> 'qos', 'null'))) else a.qos_ids end
     where a.id = p_id;
    perform _write_limits('account', p_id, coalesce(nullif(p_ask -> 'limits', 'null'), '{}'));
exception
    when check_violation or numeric_value_out_of_range then
        raise exception using errcode = 'OD010',
            message = format('account "%s": shares cannot be %s', v_name, p_ask ->> 'shares'),
            hint = 'Give a whole number from 0 to 1000000.';
end;
$$;
