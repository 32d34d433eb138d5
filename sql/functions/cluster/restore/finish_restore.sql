-- odc.finish_restore: make a restored database ready for a leader.
-- The term becomes higher than any term ever used here, and no machine owns the jobs, so that the
-- next leader, on this machine or another, adopts running processes and ends jobs that have none.
-- Arguments  p_term     the highest term seen here before
--            p_made_at  when the backup was made
-- Locks      term; allocation; tally_event; server
create or replace function odc.finish_restore(p_term bigint, p_made_at timestamptz, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _set_now(p_now);
    update term
       set term = greatest(term, p_term) + 1, beat = 0, backend_pid = null, holder = null, host = null,
           taken_at = null;
    delete from local_host;
    -- A member that was about to start may have run since the backup was made, so it must not be started now.
    update allocation set state = 'running' where state = 'starting';
    -- Transaction ids differ in this database.
    update tally_event as t
       set xid = coalesce((select e.xid from event as e where e.id <= t.event_id order by e.id desc limit 1), '0');
    update server as s
       set system_id = l.system_id, timeline = l.timeline, led_at = p_now
      from _find_lineage() as l;
    insert into event (at, kind, actor, detail)
    values (p_now, 'restored', 'odcd', jsonb_build_object('made_at', p_made_at));
end;
$$;
