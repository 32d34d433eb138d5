-- odc.enter_reservation: the attempt of a reservation that the actor may connect to now.
-- Arguments  p_rank  of the member
--            p_way   ssh or jupyter
-- Raises     OD006 UnknownJob, OD010 BadRequest: it has no such member, OD012 WrongState: it is not active, or has no SSH or
--            no Jupyter Lab, OD013 NotOwner
create or replace function odc.enter_reservation(p_actor jsonb, p_job_id bigint, p_rank integer, p_way text default 'ssh')
returns integer
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_job    job;
    v_asked  reservation;
    v_run    running;
    v_status text;
begin
    v_job := _own_reservation(jsonb_build_object('operator', true), p_job_id);
    select * into v_asked from reservation as v where v.job_id = p_job_id;
    if not _may_enter(p_actor, v_job.uid, v_asked) then
        raise exception using errcode = 'OD013',
            message = format('reservation %s belongs to %s, who has not added you to it', p_job_id, v_job.user_name),
            hint = format('%s can add you: `odcctl edit %s --add-user GITHUB_NAME`. Set your own name: `odcctl config set github_user NAME`.',
                          v_job.user_name, p_job_id);
    end if;
    select * into v_run from running as r where r.job_id = p_job_id;
    v_status := _reservation_status(coalesce(v_run.state, v_job.state, 'PENDING'), _seen_intent(v_run.job_id, v_run.intent), true);
    if v_status <> 'active' then
        raise exception using errcode = 'OD012',
            message = format('reservation %s is %s', p_job_id, v_status),
            hint = case when v_status in ('queued', 'preparing') then 'Wait until it is active: odcctl list --watch'
                        else 'Reserve again: odcctl reserve' end;
    elsif not v_asked.ask ? 'ssh_keys' then
        raise exception using errcode = 'OD012',
            message = format('reservation %s cannot be reached by SSH', p_job_id), hint = format('Open its terminal: odcctl connect %s', p_job_id);
    elsif p_rank < 0 or p_rank >= v_run.node_count then
        raise exception using errcode = 'OD010',
            message = format('reservation %s has no member %s', p_job_id, p_rank),
            hint = format('Members are numbered 0 to %s.', v_run.node_count - 1);
    elsif p_way = 'jupyter' and p_rank <> 0 then
        raise exception using errcode = 'OD010',
            message = format('member %s of reservation %s has no Jupyter Lab', p_rank, p_job_id), hint = 'Jupyter Lab runs in the first member, 0.';
    elsif p_way = 'jupyter' and v_asked.ask -> 'jupyter' is distinct from 'true' then
        raise exception using errcode = 'OD012',
            message = format('reservation %s has no Jupyter Lab', p_job_id), hint = format('Start it: odcctl edit %s --enable-jupyter', p_job_id);
    end if;
    return v_run.attempt;
end;
$$;
