-- odc._hold_term: keep leadership for the rest of the transaction, or raise an error.
-- Arguments  p_term  the term the caller leads under
-- Locks      term, for key share, to the end of the transaction: raising the term waits for it, a beat does not
-- Raises     OD020 LeadershipLost: another daemon has raised the term
create or replace function odc._hold_term(p_term bigint)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_term bigint;
begin
    select term into strict v_term from term for key share;
    if v_term <> p_term then
        raise exception using errcode = 'OD020',
            message = format('term %s is over: the current term is %s', p_term, v_term),
            hint = 'This daemon no longer leads; nothing was changed.';
    end if;
end;
$$;
