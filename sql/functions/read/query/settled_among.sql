-- odc.settled_among: the jobs and arrays of these that have nothing live any longer. Long polls call it.
-- Arguments  p_job_ids  jobs, or arrays as a whole
create or replace function odc.settled_among(p_job_ids bigint[])
returns table (job_id bigint)
language sql stable as $$
    select i
      from unnest(p_job_ids) as i
     -- One condition after the other, so that the last, which reads every task, runs only when all tasks have started.
     where case when exists (select from odc.pending as p where p.job_id = i) then false
                when exists (select from odc.running as r where r.job_id = i or r.array_job_id = i) then false
                else not exists (select from odc.job as j join odc.pending as p on p.job_id = j.id
                                  where j.array_job_id = i) end
$$;
