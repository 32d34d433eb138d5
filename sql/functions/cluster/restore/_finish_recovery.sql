-- odc._finish_recovery: prepare a database that was restored without `odcd restore`: a promoted standby, recovery to a point
-- in time, pg_basebackup, pg_dump. odc.take_term calls it. It does nothing on the PostgreSQL that was led last.
-- It cannot know how much was lost, so job ids, event ids and the term continue above all that may have been used. It skips
-- 100 for each second since the last leader's last sweep (eight million jobs a day), at least 1,000 and at most 4,000,000.
-- That maximum is less than the partitions that are created ahead.
-- A fail-over takes less than v_outage and loses no accepted request, so members that were about to start do start.
-- After a longer outage they may have run already, so they count as started.
-- Arguments  p_holder  the daemon that takes the term
-- Returns    the number of terms to skip; 0: nothing was recovered
-- Locks      term is the caller's, for update; server; allocation; event; pass
create or replace function odc._finish_recovery(p_holder text, p_now timestamptz)
returns bigint
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_outage  constant interval := '10 minutes';
    v_most    constant bigint := 4000000;
    v_here    record;
    v_server  server;
    v_lost    interval;
    v_skip    bigint;
begin
    select * into strict v_here from _find_lineage();
    select * into strict v_server from server for update;
    if (v_server.system_id, v_server.timeline) is not distinct from (v_here.system_id, v_here.timeline) then
        return 0;
    end if;
    v_lost := case when v_server.led_at is not null then greatest(p_now - v_server.led_at, '0') end;
    v_skip := case when v_lost is null then v_most
                   else least(1000 + 100 * ceil(extract(epoch from v_lost)), v_most) end;
    -- Count from the rows, not from the sequence: setval survives a rollback, and the next try would skip again.
    perform setval('job_id_seq', greatest(s.last_value, coalesce((select max(id) from job), s.last_value) + v_skip))
       from job_id_seq as s;
    perform setval('event_id_seq', greatest(s.last_value, coalesce((select max(id) from event), s.last_value) + v_skip))
       from event_id_seq as s;
    if v_lost is null or v_lost > v_outage then
        update allocation set state = 'running' where state = 'starting';
    end if;
    if v_server.system_id is distinct from v_here.system_id then
        -- The jobs may run on another machine now, and transaction ids start from the beginning.
        delete from local_host;
        -- odc.settle_events has done most of them.
        update event set xid = '0' where xid >= pg_current_xact_id();
        update tally_event set xid = '0' where xid >= pg_current_xact_id();
        update pass set snapshot = null;
    end if;
    update server set system_id = v_here.system_id, timeline = v_here.timeline, led_at = p_now;
    insert into event (at, kind, actor, detail)
    values (p_now, 'recovered', p_holder,
            jsonb_build_object('led_at', v_server.led_at, 'timeline', v_here.timeline, 'skipped', v_skip));
    return v_skip;
end;
$$;
