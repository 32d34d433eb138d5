-- odc.note_signals: record which members have acknowledged the signal before their time limit, and which could not be
-- reached for the first time. The signal is sent again to those.
-- Arguments  parallel arrays: job, attempt, rank, and why it was not delivered; null: it was
-- Locks      term for share; running by job, allocation
-- Raises     OD020 LeadershipLost
create or replace function odc.note_signals(
    p_term bigint, p_job_ids bigint[], p_attempts integer[], p_ranks integer[], p_troubles text[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    perform from running as r where r.job_id = any (p_job_ids) order by r.job_id for update;
    with said as materialized (
        select r.job_id, r.attempt, s.rank, s.trouble
          from unnest(p_job_ids, p_attempts, p_ranks, p_troubles) as s (job_id, attempt, rank, trouble)
          join running as r on r.job_id = s.job_id and r.attempt = s.attempt
    ), noted as (
        update allocation as a set signalled_at = p_now
          from said as s
         where a.job_id = s.job_id and a.rank = s.rank and s.trouble is null and a.signalled_at is null
    )
    insert into event (at, kind, actor, job_id, detail)
    select p_now, 'not_signalled', 'odcd', s.job_id,
           jsonb_build_object('attempt', s.attempt, 'rank', s.rank, 'why', s.trouble)
      from said as s where s.trouble is not null
     order by s.job_id, s.rank;
    update running as r set signalled = true
      from job as j
     where r.job_id = any (p_job_ids) and j.id = r.job_id and not r.signalled
       and not exists (
           select from allocation as a
            where a.job_id = r.job_id and a.state <> 'ended' and a.signalled_at is null and (a.rank = 0 or not j.signal_batch));
end;
$$;
