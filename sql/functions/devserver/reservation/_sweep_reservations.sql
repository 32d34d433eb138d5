-- odc._sweep_reservations: end reservations that were not ready in time or waited too long, and delete the keys of
-- ended ones. Move the planned ends of reservations in preparation forward, because their clocks have not started.
-- Arguments  p_stale_after  how long a reservation may wait; null: forever
-- Returns    whether a reservation was ended
-- Locks      pending, running, allocation rows of these
create or replace function odc._sweep_reservations(p_stale_after interval, p_now timestamptz)
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_budget constant interval := '1 hour';     -- for all phases of a preparation together; each phase also has its own limit
    v_stale  bigint[];
    v_ended  boolean;
begin
    if not exists (select from reservation) then
        return false;
    end if;
    v_stale := (select array_agg(p.job_id order by p.job_id)
                  from pending as p join reservation as v on v.job_id = p.job_id
                 where p.queued_at <= p_now - p_stale_after);
    if v_stale is not null then
        perform _end_pending(v_stale, null, null, 'CANCELLED', 'odcd', p_now);
        update job set end_detail = format('it waited longer than %s', _duration(extract(epoch from p_stale_after)::integer))
         where id = any (v_stale);
    end if;
    update running as r
       set intent = 'member_failed', intent_by = 'odcd', intent_at = p_now, state = 'COMPLETING', exit_cause = 'start_failed',
           exit_detail = format('it was not ready within %s', _duration(extract(epoch from v_budget)::integer))
      from reservation as v
     where v.job_id = r.job_id and v.launched_at is null and r.intent is null and r.started_at <= p_now - v_budget;
    v_ended := found or v_stale is not null;
    delete from box_key as k
     where not exists (select from running as r where r.job_id = k.job_id) and not exists (select from pending as p where p.job_id = k.job_id);
    delete from box_jupyter as b where not exists (select from running as r where r.job_id = b.job_id);
    delete from box_port as b where not exists (select from running as r where r.job_id = b.job_id);
    delete from box_look as b where not exists (select from running as r where r.job_id = b.job_id);
    with put_off as (
        update running as r set ends_at = p_now + make_interval(secs => v.duration_s) + _reservation_grace()
          from reservation as v
         where v.job_id = r.job_id and v.launched_at is null and r.intent is null
           and r.ends_at < p_now + make_interval(secs => v.duration_s) + _reservation_grace() - interval '1 minute'
        returning r.job_id, r.ends_at
    )
    update allocation as a set ends_at = o.ends_at from put_off as o where a.job_id = o.job_id;
    return v_ended;
end;
$$;
