-- odc._end_leader: terminate the backends of the former leader, and wait until the backend of its passes is gone.
-- Arguments  p_backend_pid  the backend of its passes
--            p_old_tokens   the last word of each application_name of that daemon
--            p_tokens       the caller's own tokens, whose backends are kept: the caller may have led before
create or replace function odc._end_leader(p_backend_pid integer, p_old_tokens text[], p_tokens text[])
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_pids integer[];
begin
    select array_agg(pid) into v_pids
      from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()
       and (pid = p_backend_pid and application_name like 'odcd-leader%'
            or substring(application_name from '[^ ]+$') = any (p_old_tokens)
               and substring(application_name from '[^ ]+$') <> all (p_tokens));
    perform pg_terminate_backend(pid) from unnest(v_pids) as pid;
    -- The other backends need not be gone yet: while one holds the term, the caller waits for that row.
    perform pg_terminate_backend(pid, 1000) from unnest(v_pids) as pid where pid = p_backend_pid;
end;
$$;
