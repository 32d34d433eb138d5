-- odc.fold_tally: add new events to the tally, in the order in which they became final. Each event counts once, across
-- leader changes and interruptions, because the sums and the position are written in one transaction; events committed
-- late are not missed. After a restore from a backup, events come by their ids: one whose transaction was open at the
-- backup may or may not be counted.
-- Arguments  p_limit  maximum number of events
-- Returns    the number of events: less than p_limit once all are counted
-- Locks      term for share; tally_event; tally and tally_histogram rows
-- Raises     OD020 LeadershipLost
create or replace function odc.fold_tally(p_term bigint, p_limit integer, p_now timestamptz)
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_at    tally_event;
    v_below xid8;
    v_ids   bigint[];
begin
    perform _hold_term(p_term);
    select * into strict v_at from tally_event for update;
    v_below := _final_below();
    v_ids := array(
        select e.id from event as e
         where (e.xid, e.id) > (v_at.xid, v_at.event_id) and e.xid < v_below
         order by e.xid, e.id
         limit p_limit);
    if v_ids <> '{}' then
        perform _tally_events(v_ids);
        update tally_event as t set xid = e.xid, event_id = e.id
          from event as e where e.id = v_ids[cardinality(v_ids)];
    end if;
    perform _tell_gpu_time(p_now);
    return cardinality(v_ids);
end;
$$;
