-- odc._activate_reservations: start the clocks of reservations whose members are all ready.
-- Arguments  p_job_ids  jobs, locked by the caller; other kinds of jobs, and active or unready reservations, are ignored
-- Locks      reservation, running, allocation rows of these
create or replace function odc._activate_reservations(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    with launched as (
        update reservation as v
           set launched_at = p_now, expires_at = p_now + make_interval(secs => v.duration_s)
          from running as r
         where v.job_id = any (p_job_ids) and v.launched_at is null and r.job_id = v.job_id and r.intent is null
           and r.live_members = r.node_count
           and not exists (select from allocation as a where a.job_id = v.job_id and a.state <> 'running')
        returning v.job_id, v.expires_at, v.expires_at + _reservation_grace() as ends_at
    ), active as (
        update running as r set state = 'RUNNING', ends_at = l.ends_at from launched as l where r.job_id = l.job_id
    ), held as (
        update allocation as a set ends_at = l.ends_at from launched as l where a.job_id = l.job_id
    )
    insert into event (at, kind, actor, job_id, detail)
    select p_now, 'active', 'odcd', l.job_id, jsonb_build_object('expires_at', _iso(l.expires_at)) from launched as l order by l.job_id;
    if found then
        perform _wake();
    end if;
end;
$$;
