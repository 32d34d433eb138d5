-- odc.take_term: raise the term and become leader, unless the row has changed since the caller last read it.
-- It first terminates the old leader's backends, so that none of them keeps the row locked. A backend that waits for a
-- stopped client to read its answer would keep the lock for as long as the client is stopped.
-- Arguments  p_term, p_beat  the row as the caller has seen it: unchanged for the lease on the caller's own clock,
--                            or with a holder that released it or whose backend is gone
--            p_holder        the new leader's name, for people to read
--            p_host          the host it runs on
--            p_now           the daemon's clock
--            p_tokens        the last word of each application_name of this daemon
-- Returns    the new term, or null if the row has changed
-- Locks      term, for update, waits at most 2 s for it; the locks of odc._finish_recovery, on a PostgreSQL that was
--            promoted or restored
-- Raises     55P03: another backend has locked the row; call it again
create or replace function odc.take_term(
    p_term bigint, p_beat bigint, p_holder text, p_host text, p_now timestamptz, p_tokens text[] default '{}')
returns bigint
language plpgsql volatile set search_path = odc, pg_temp set lock_timeout = '2s' as $$
declare
    v_old  term;
    v_term bigint;
    v_skip bigint;
begin
    -- Without a lock: a beat may still arrive, and is detected below.
    select * into strict v_old from term;
    if v_old.term <> p_term or v_old.beat <> p_beat then
        return null;
    end if;
    if v_old.holder is not null then
        perform _end_leader(v_old.backend_pid, v_old.tokens, p_tokens);
    end if;

    select * into strict v_old from term for update;
    if v_old.term <> p_term or v_old.beat <> p_beat then
        return null;
    end if;
    v_skip := _finish_recovery(p_holder, p_now);
    update term
       set term = term + 1 + v_skip, beat = 0, backend_pid = pg_backend_pid(),
           holder = p_holder, host = p_host, taken_at = p_now, tokens = p_tokens
    returning term into v_term;
    insert into event (at, kind, actor, detail)
    values (p_now, 'leader', p_holder, jsonb_build_object('term', v_term, 'host', p_host));
    return v_term;
end;
$$;
