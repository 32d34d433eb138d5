-- odc._refuse_no_policy: refuse the name of a policy that does not exist.
-- Raises     OD029 UnknownPolicy
create or replace function odc._refuse_no_policy(p_name text)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if exists (select from policy as y where y.name = p_name) then
        return;
    end if;
    raise exception using errcode = 'OD029',
        message = format('policy "%s" does not exist', p_name),
        hint = format('Policies: %s.', (select string_agg(y.name, ', ' order by y.name) from policy as y));
end;
$$;
