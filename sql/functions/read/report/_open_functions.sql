-- odc._open_functions: functions of PostgreSQL that take locks or store data, and that the role odc_report may call.
create or replace function odc._open_functions()
returns setof regprocedure
language sql stable as $$
    select p.oid::regprocedure
      from pg_catalog.pg_proc as p
     where p.pronamespace = 'pg_catalog'::regnamespace
       and (p.proname ~ '^pg_(try_)?advisory_' or p.proname in ('lo_creat', 'lo_create', 'lo_from_bytea', 'pg_logical_emit_message'))
       and has_function_privilege('odc_report', p.oid, 'execute')
$$;
