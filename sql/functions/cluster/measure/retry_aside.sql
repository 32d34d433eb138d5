-- odc.retry_aside: retry the events that were set aside; they may count now, with another version or other data.
-- Returns    the number of events counted
-- Locks      term for share; tally_aside; tally and tally_histogram rows
-- Raises     OD020 LeadershipLost
create or replace function odc.retry_aside(p_term bigint)
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_counted integer := 0;
    v_id      bigint;
begin
    perform _hold_term(p_term);
    for v_id in select a.event_id from tally_aside as a order by a.event_id for update limit 1000 loop
        if _tally_alone(v_id) is null then
            delete from tally_aside as a where a.event_id = v_id;
            v_counted := v_counted + 1;
        end if;
    end loop;
    return v_counted;
end;
$$;
