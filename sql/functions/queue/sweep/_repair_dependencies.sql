-- odc._repair_dependencies: judge again the jobs that wait for a dependency although none of their dependencies is still waiting.
-- Returns    one sentence per job that no longer has to wait, or can never start
-- Locks      the caller holds the turn; dependency and pending rows of these jobs
create or replace function odc._repair_dependencies(p_now timestamptz)
returns text[]
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_stuck bigint[] := array(select s from _stuck_jobs() as s order by s);
begin
    if v_stuck = '{}' then
        return v_stuck::text[];
    end if;
    perform _judge_dependencies(v_stuck, p_now);
    -- A job without any dependencies left has nothing to wait for.
    update pending as p
       set dependency = 'met',
           eligible_at = case when p.held is null and p.begun and p.lacks is null then coalesce(p.eligible_at, p_now) else p.eligible_at end
     where p.job_id = any (v_stuck) and p.dependency = 'waiting'
       and not exists (select from dependency as d where d.job_id = p.job_id);
    return array(
        select format('job %s: waited for dependencies that were over; corrected to %s', p.job_id, p.dependency)
          from pending as p
         where p.job_id = any (v_stuck) and p.dependency <> 'waiting'
         order by p.job_id);
end;
$$;
