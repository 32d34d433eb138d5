-- odc.share_reservation: allow the keys of a GitHub user to enter a reservation that is not over, in addition to its
-- owner's.
-- Arguments  p_keys  the user's keys, one line of authorized_keys each; existing keys are not added twice
-- Returns    JSON {attempt, keys}: the attempt that must receive all keys of the reservation; null: none runs
-- Locks      reservation, job
-- Raises     OD006 UnknownJob, OD012 WrongState: it is over, or has no SSH, OD013 NotOwner
create or replace function odc.share_reservation(
    p_actor jsonb, p_job_id bigint, p_github_user text, p_keys text[], p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_job   job;
    v_run   running;
    v_asked reservation;
    v_keys  text[];
begin
    perform _set_now(p_now);
    v_job := _own_reservation(p_actor, p_job_id);
    select * into v_asked from reservation as v where v.job_id = p_job_id for update;
    select * into v_run from running as r where r.job_id = p_job_id;
    if v_job.state is not null or v_run.intent in ('cancel', 'timeout') then
        raise exception using errcode = 'OD012',
            message = format('reservation %s has ended', p_job_id), hint = 'No one can connect to it now.';
    elsif not v_asked.ask ? 'ssh_keys' then
        raise exception using errcode = 'OD012',
            message = format('reservation %s cannot be reached by SSH', p_job_id), hint = 'It cannot be shared with the SSH keys of others.';
    end if;
    v_keys := array(select k.line
                      from unnest(array(select jsonb_array_elements_text(v_asked.ask -> 'ssh_keys')) || p_keys) with ordinality as k (line, n)
                     group by k.line order by min(k.n));
    update reservation as v
       set ask = v.ask || jsonb_build_object('ssh_keys', v_keys),
           secondary_users = case when lower(p_github_user) in (select lower(u) from unnest(v.secondary_users) as u)
                                  then v.secondary_users else v.secondary_users || p_github_user end
     where v.job_id = p_job_id;
    insert into event (at, kind, actor, job_id, detail)
    values (p_now, 'shared', p_actor ->> 'user', p_job_id,
            jsonb_build_object('github_user', p_github_user, 'keys', cardinality(p_keys)));
    perform _wake();
    return json_build_object('attempt', v_run.attempt, 'keys', v_keys)::text;
end;
$$;
