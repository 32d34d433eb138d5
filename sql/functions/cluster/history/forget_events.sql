-- odc.forget_events: delete events that odc.pick_old_events returned.
-- Returns    the number of deleted events
-- Locks      term for share; the rows
-- Raises     OD020 LeadershipLost
create or replace function odc.forget_events(p_term bigint, p_ids bigint[])
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_gone integer;
begin
    perform _hold_term(p_term);
    delete from event where id = any (p_ids);
    get diagnostics v_gone = row_count;
    return v_gone;
end;
$$;
