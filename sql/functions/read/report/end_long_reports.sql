-- odc.end_long_reports: end statements of logins with the role odc_report that have run for too long. A login can turn off
-- its own statement_timeout, and the views share the CPUs with passes.
-- Arguments  p_limit  how long such a statement may run
-- Returns    how many were ended; 0 also if odcd's role may not end them: see grant_reports
create or replace function odc.end_long_reports(p_now timestamptz, p_limit interval)
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    if to_regrole('odc_report') is null or not pg_has_role('pg_signal_backend', 'usage') then
        return 0;
    end if;
    return (select count(*) filter (where pg_cancel_backend(a.pid))
              from pg_stat_activity as a
              join pg_roles as r on r.oid = a.usesysid
             where a.datname = current_database() and a.state = 'active' and a.query_start < p_now - p_limit
               and not r.rolsuper and r.rolname <> current_user and pg_has_role(r.oid, 'odc_report', 'member'));
end;
$$;
