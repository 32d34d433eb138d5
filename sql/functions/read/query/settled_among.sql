-- odc.settled_among: which of these jobs and arrays have nothing live any more. Long polls ask it.
-- Arguments  p_job_ids  jobs, or arrays as a whole
create or replace function odc.settled_among(p_job_ids bigint[])
returns table (job_id bigint)
language sql stable as $$
    select i
      from unnest(p_job_ids) as i
     -- One after the other, so that the last, which reads every element, is asked when all are under way.
     where case when exists (select from odc.pending as p where p.job_id = i) then false
                when exists (select from odc.running as r where r.job_id = i or r.array_job_id = i) then false
                else not exists (select from odc.job as j join odc.pending as p on p.job_id = j.id
                                  where j.array_job_id = i) end
$$;
