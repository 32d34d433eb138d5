-- odc.owed_gpu_use: ended attempts whose GPU usage is not stored yet, earliest end first.
-- Arguments  p_ended_before  only attempts that ended before this, so that their last measurements have arrived
--            p_most          maximum number
-- Locks      term for share
-- Raises     OD020 LeadershipLost
create or replace function odc.owed_gpu_use(p_term bigint, p_ended_before timestamptz, p_most integer, p_now timestamptz)
returns table (
    job_id bigint, attempt integer, gpus integer, running_at timestamptz, ended_at timestamptz, covered_s double precision, source text)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    perform _hold_term(p_term);
    return query
        select u.job_id, u.attempt, u.gpus, u.running_at, u.ended_at, u.covered_s, u.source
          from gpu_use as u
         where u.stored_at is null and u.ended_at <= p_ended_before and (u.again_at is null or u.again_at <= p_now)
         order by u.ended_at, u.job_id
         limit p_most;
end;
$$;
