-- odc.take_term: raise the term and lead, unless somebody else moved since the caller last looked.
-- The old leader's backend is terminated, so that its pass in flight rolls back.
-- Arguments  p_term, p_beat  the row as the caller has seen it, unchanged for the lease on its own clock,
--                            or with a holder that let go or whose backend is gone
--            p_holder        who takes it, for people to read
--            p_host          the host it runs on
--            p_now           the daemon's clock
-- Returns    the new term, or null when the row has changed
-- Locks      term, for update; what odc._finish_recovery locks, on a PostgreSQL that was promoted or restored
create or replace function odc.take_term(p_term bigint, p_beat bigint, p_holder text, p_host text, p_now timestamptz)
returns bigint
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_old  term;
    v_term bigint;
    v_skip bigint;
begin
    select * into strict v_old from term for update;
    if v_old.term <> p_term or v_old.beat <> p_beat then
        return null;
    end if;
    v_skip := _finish_recovery(p_holder, p_now);
    update term
       set term = term + 1 + v_skip, beat = 0, backend_pid = pg_backend_pid(),
           holder = p_holder, host = p_host, taken_at = p_now
    returning term into v_term;
    perform pg_terminate_backend(pid)
       from pg_stat_activity
      where pid = v_old.backend_pid and pid <> pg_backend_pid() and application_name = 'odcd-leader'
        and datname = current_database();
    insert into event (at, kind, actor, detail)
    values (p_now, 'leader', p_holder, jsonb_build_object('term', v_term, 'host', p_host));
    return v_term;
end;
$$;
