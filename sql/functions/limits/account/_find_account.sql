-- odc._find_account: an account by name.
-- Raises     OD002 UnknownAccount
create or replace function odc._find_account(p_name text)
returns account
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_account account;
begin
    select * into v_account from account where name = p_name and deleted_at is null;
    if not found then
        raise exception using errcode = 'OD002',
            message = format('account "%s" does not exist', p_name),
            hint = format('Accounts: %s.', (select string_agg(name, ', ' order by name) from account where deleted_at is null));
    end if;
    return v_account;
end;
$$;
