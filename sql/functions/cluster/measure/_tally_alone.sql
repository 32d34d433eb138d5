-- odc._tally_alone: add one event to the tally.
-- Returns    why that is impossible; null: it was added. Only errors in the event's own data are caught
-- Locks      tally and tally_histogram rows
create or replace function odc._tally_alone(p_id bigint)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _tally_events(array[p_id]);
    return null;
exception when data_exception or integrity_constraint_violation or cardinality_violation then
    return format('%s (SQLSTATE %s)', sqlerrm, sqlstate);
end;
$$;
