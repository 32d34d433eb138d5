-- odc.settle_events: on a database that was restored into another PostgreSQL, mark earlier events as final. Their
-- transaction ids are of the old server and may be higher than any of this one. The daemon calls it, a batch per transaction,
-- before it takes the term: a long history would not fit into one statement.
-- Returns    the number of rows changed; 0: none is left, or this is the PostgreSQL that was led last
create or replace function odc.settle_events(p_rows integer)
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_count integer;
begin
    if (select s.system_id from server as s) is not distinct from (select l.system_id from _find_lineage() as l) then
        return 0;
    end if;
    with batch as (
        select e.id from event as e where e.xid >= pg_current_xact_id() limit p_rows
    )
    update event as e set xid = '0' from batch as s where e.id = s.id;
    get diagnostics v_count = row_count;
    return v_count;
end;
$$;
