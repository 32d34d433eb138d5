-- odc_report: what a program that draws may read, and nothing else. Its views are in sql/views/report/. The role is of the whole
-- server, so another database may have made it; who may not make roles is told in docs/operating/monitoring.md how it comes to be.
-- Locks nothing.
create schema if not exists odc_report;

do $$
begin
    if not exists (select from pg_roles where rolname = 'odc_report') then
        create role odc_report nologin;
    end if;
exception
    when insufficient_privilege or duplicate_object or unique_violation then
        null;
end;
$$;
