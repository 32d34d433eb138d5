-- odc.list_accounts: accounts, each after the one above it.
-- Arguments  p_name  null: all
-- Returns    a JSON array
-- Raises     OD002 UnknownAccount
create or replace function odc.list_accounts(p_name text)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if p_name is not null then
        return json_build_array(_account_json(_find_account(p_name)));
    end if;
    return (
        with recursive tree as (
            select a.id, array[a.name] as path from account as a where a.parent is null and a.deleted_at is null
             union all
            select a.id, t.path || a.name from tree as t join account as a on a.parent = t.id and a.deleted_at is null
        )
        select coalesce(json_agg(_account_json(a) order by t.path), '[]')
          from tree as t join account as a on a.id = t.id);
end;
$$;
