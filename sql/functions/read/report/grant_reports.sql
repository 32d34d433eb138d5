-- odc.grant_reports: allow the role odc_report to read the views of schema odc_report. Every start of odcd calls it;
-- call it after you have created that role, as a superuser the first time: see fence_locks.
-- Locks      the schema's lock of odcd/database/schema.py, when something is lacking
-- Returns    whether the role exists
create or replace function odc.grant_reports()
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_ours regrole := (select nspowner from pg_namespace where nspname = 'odc');
begin
    if not exists (select from pg_roles where rolname = 'odc_report') then
        return false;
    end if;
    -- Grant only what is missing: a grant is a write, and other daemons may start at the same time.
    if not has_schema_privilege('odc_report', 'odc_report', 'usage')
       or exists (select from pg_class as c
                   where c.relnamespace = 'odc_report'::regnamespace and c.relkind = 'v'
                     and not has_table_privilege('odc_report', c.oid, 'select')) then
        perform pg_advisory_xact_lock(0x6F6463);
        grant usage on schema odc_report to odc_report;
        grant select on all tables in schema odc_report to odc_report;
    end if;
    perform fence_locks();
    -- For end_long_reports: to see and to end statements of other roles.
    if (select rolsuper from pg_roles where rolname = current_user) and not pg_has_role(v_ours, 'pg_signal_backend', 'usage') then
        execute format('grant pg_signal_backend, pg_read_all_stats to %s', v_ours);
    end if;
    return true;
end;
$$;
