-- odc.reports_lack: what grant_reports has not done yet, for `odcd doctor`. Changes nothing.
-- Returns    views: the role odc_report may not read all views; locks: it may take odc's locks or store data; limit: odcd
--            may not end its long statements. Null: nothing reads reports, because no login has the role
create or replace function odc.reports_lack()
returns text[]
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ours regrole := (select nspowner from pg_namespace where nspname = 'odc');
begin
    if not exists (select from pg_auth_members as m where m.roleid = to_regrole('odc_report')) then
        return null;
    end if;
    return array_remove(array[
        case when not has_schema_privilege('odc_report', 'odc_report', 'usage')
                  or exists (select from pg_class as c
                              where c.relnamespace = 'odc_report'::regnamespace and c.relkind = 'v'
                                and not has_table_privilege('odc_report', c.oid, 'select')) then 'views' end,
        case when has_database_privilege('odc_report', current_database(), 'temporary')
                  or exists (select from _open_functions()) then 'locks' end,
        case when not pg_has_role(v_ours, 'pg_signal_backend', 'usage') then 'limit' end], null);
end;
$$;
