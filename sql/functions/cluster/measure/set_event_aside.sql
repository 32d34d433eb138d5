-- odc.set_event_aside: count the next event alone; if the event itself is at fault, keep it in tally_aside and continue
-- after it.
-- Returns    a row if it was set aside: its id, and why; none if it was counted or there is no event
-- Locks      term for share; tally_event; tally and tally_histogram rows
-- Raises     OD020 LeadershipLost; errors that are not the event's fault
create or replace function odc.set_event_aside(p_term bigint, p_now timestamptz)
returns table (event_id bigint, why text)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_at    tally_event;
    v_event event;
    v_why   text;
begin
    perform _hold_term(p_term);
    select * into strict v_at from tally_event for update;
    select * into v_event from event as e
     where (e.xid, e.id) > (v_at.xid, v_at.event_id) and e.xid < _final_below()
     order by e.xid, e.id
     limit 1;
    if v_event.id is null then
        return;
    end if;
    v_why := _tally_alone(v_event.id);
    update tally_event as t set xid = v_event.xid, event_id = v_event.id;
    if v_why is not null then
        insert into tally_aside values (v_event.id, v_why, p_now);
        return query select v_event.id, v_why;
    end if;
end;
$$;
