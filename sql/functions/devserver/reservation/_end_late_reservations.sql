-- odc._end_late_reservations: end reservations that were not ready in time, or waited too long in the queue: at most
-- 1,000 of these at once, because others wait for the turn.
-- Arguments  p_stale_after  how long a reservation may wait; null: forever
--            p_aside        jobs to leave out
-- Returns    whether one was ended
-- Locks      pending, running rows of these
create or replace function odc._end_late_reservations(
    p_stale_after interval, p_now timestamptz, p_aside bigint[] default '{}')
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_budget constant interval := '1 hour';     -- for all phases of a preparation together; each phase also has its own limit
    v_stale  bigint[];
begin
    v_stale := (select array_agg(s.job_id order by s.job_id)
                  from (select p.job_id
                          from pending as p join reservation as v on v.job_id = p.job_id
                         where p.queued_at <= p_now - p_stale_after and p.job_id <> all (p_aside)
                         order by p.job_id limit 1000) as s);
    if v_stale is not null then
        perform _end_pending(v_stale, null, null, 'CANCELLED', 'odcd', p_now);
        update job set end_detail = format('it waited longer than %s', _duration(extract(epoch from p_stale_after)::integer))
         where id = any (v_stale);
    end if;
    update running as r
       set intent = 'member_failed', intent_by = 'odcd', intent_at = p_now, state = 'COMPLETING', exit_cause = 'start_failed',
           exit_detail = format('it was not ready within %s', _duration(extract(epoch from v_budget)::integer))
      from reservation as v
     where v.job_id = r.job_id and v.launched_at is null and r.intent is null and r.started_at <= p_now - v_budget and r.job_id <> all (p_aside);
    return found or v_stale is not null;
end;
$$;
