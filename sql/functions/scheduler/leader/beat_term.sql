-- odc.beat_term: show followers that the leader of p_term is alive.
-- Raises     OD020 LeadershipLost: another daemon has raised the term
create or replace function odc.beat_term(p_term bigint)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    update term set beat = beat + 1 where term = p_term;
    if not found then
        perform _hold_term(p_term);
    end if;
end;
$$;
