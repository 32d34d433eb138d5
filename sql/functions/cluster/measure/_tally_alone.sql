-- odc._tally_alone: add what one event tells to the tally.
-- Returns    why that cannot be, null: it was added. What is wrong with its data is caught, and nothing else
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
