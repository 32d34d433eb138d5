-- odc.set_jupyter: turn Jupyter Lab on or off in a reservation. A repeated request retries it if it failed.
-- Locks      reservation, box_jupyter
-- Raises     OD006 UnknownJob, OD012 WrongState: it is over, or has no SSH, OD013 NotOwner
create or replace function odc.set_jupyter(p_actor jsonb, p_job_id bigint, p_on boolean, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_job   job;
    v_run   running;
    v_asked reservation;
begin
    perform _set_now(p_now);
    v_job := _own_reservation(p_actor, p_job_id);
    select * into v_asked from reservation as v where v.job_id = p_job_id for update;
    select * into v_run from running as r where r.job_id = p_job_id;
    if v_job.state is not null or v_run.intent in ('cancel', 'timeout') then
        raise exception using errcode = 'OD012',
            message = format('reservation %s has ended', p_job_id), hint = 'Reserve again with: odcctl reserve --jupyter';
    elsif not v_asked.ask ? 'ssh_keys' then
        raise exception using errcode = 'OD012',
            message = format('odc cannot start Jupyter Lab in reservation %s, because the reservation does not run odc''s start program', p_job_id),
            hint = 'Start Jupyter Lab yourself inside it.';
    end if;
    -- A failed start or stop is due again.
    update box_jupyter as b set running = not p_on, error = null where b.job_id = p_job_id and b.error is not null;
    if not found and coalesce(v_asked.ask -> 'jupyter' = 'true', false) = p_on then
        return;
    end if;
    update reservation as v set ask = v.ask || jsonb_build_object('jupyter', p_on) where v.job_id = p_job_id;
    insert into event (at, kind, actor, job_id, detail)
    values (p_now, 'jupyter_asked', p_actor ->> 'user', p_job_id, jsonb_build_object('on', p_on));
    perform _wake();
end;
$$;
