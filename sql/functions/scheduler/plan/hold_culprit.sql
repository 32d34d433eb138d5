-- odc.hold_culprit: hold a pending job because of which passes fail. An operator can release it.
-- If three jobs of its user are held for that already, all pending jobs of the user are held: each search for one of them
-- takes many passes.
-- Arguments  p_why  how the pass failed
-- Returns    the jobs that were held
-- Locks      term for share; the turn; pending rows of these jobs
-- Raises     OD020 LeadershipLost
create or replace function odc.hold_culprit(p_term bigint, p_job_id bigint, p_why text, p_now timestamptz)
returns bigint[]
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_most constant integer := 3;
    v_uid  integer;
    v_held bigint[];
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    select p.uid into v_uid from pending as p where p.job_id = p_job_id and p.ready;
    with culprit as (
        update pending as p
           set held = 'admin', reason = 'SystemFailure'
         where p.uid = v_uid and p.ready
           and (p.job_id = p_job_id
                or v_most <= (select count(*) from pending as h where h.uid = v_uid and h.held = 'admin' and h.reason = 'SystemFailure'))
        returning p.job_id
    ), told as (
        insert into event (at, kind, actor, job_id, detail)
        select p_now, 'held', 'odcd', c.job_id, jsonb_build_object('reason', 'SystemFailure', 'detail', p_why)
          from culprit as c
         order by c.job_id
    )
    select array_agg(c.job_id order by c.job_id) into v_held from culprit as c;
    perform _wake();
    return coalesce(v_held, '{}');
end;
$$;
