-- odc.record_progress: record the progress of members of reservations, and restarts of their containers. A repeated
-- report changes only the message; an ended attempt is ignored.
-- Arguments  parallel arrays: job, attempt, rank, kind, when, detail. kind is a phase of box_phase; or restart, oom: the container
--            ended then, by itself or for lack of memory, and restarted
-- Locks      term for share; running rows of these for share
-- Raises     OD020 LeadershipLost
create or replace function odc.record_progress(
    p_term bigint, p_job_ids bigint[], p_attempts integer[], p_ranks integer[], p_kinds text[], p_ats timestamptz[], p_details text[],
    p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    perform from running as r where r.job_id = any (p_job_ids) order by r.job_id for share;
    with reported as (
        select t.job_id, t.attempt, t.rank, t.kind, t.at, t.detail, t.n
          from unnest(p_job_ids, p_attempts, p_ranks, p_kinds, p_ats, p_details) with ordinality
               as t (job_id, attempt, rank, kind, at, detail, n)
          join running as r on r.job_id = t.job_id and r.attempt = t.attempt
          join reservation as v on v.job_id = t.job_id
    ), restarted as (
        insert into box_restart (job_id, attempt, rank, ended_at, oom, detail)
        select distinct on (t.job_id, t.attempt, t.rank, t.at) t.job_id, t.attempt, t.rank, t.at, t.kind = 'oom', t.detail
          from reported as t where t.kind in ('restart', 'oom')
         order by t.job_id, t.attempt, t.rank, t.at, t.kind
            on conflict do nothing
        returning *
    ), noted as (
        insert into event (at, kind, actor, job_id, detail)
        select p_now, case when a.oom then 'box_oom' else 'box_restarted' end, 'odcd', a.job_id,
               jsonb_strip_nulls(jsonb_build_object('rank', a.rank, 'ended_at', _iso(a.ended_at), 'detail', a.detail))
          from restarted as a order by a.job_id, a.rank, a.ended_at
    )
    insert into box_phase as p (job_id, attempt, rank, phase, at, told_at, message)
    select distinct on (t.job_id, t.attempt, t.rank, t.kind) t.job_id, t.attempt, t.rank, t.kind, t.at, t.at, t.detail
      from reported as t where t.kind not in ('restart', 'oom')
     order by t.job_id, t.attempt, t.rank, t.kind, t.n desc
        on conflict (job_id, attempt, rank, phase) do update set told_at = greatest(p.told_at, excluded.told_at), message = excluded.message;
    perform _wake();
end;
$$;
