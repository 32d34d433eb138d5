-- odc._why_planned: the running jobs that must end before a job with a planned start can have its nodes.
-- Returns    per job and node the GPUs it holds there and when its time limit ends, soonest first;
--            16 of them at most
create or replace function odc._why_planned(p_job_id bigint)
returns table (text text, job_id bigint, node text, gpus integer, until timestamptz)
language sql stable as $$
    select format('job %s holds %s GPUs and %s CPUs of %s%s', al.job_id, al.gpus, al.cpus, n.name,
                  coalesce(' until ' || odc._iso(al.ends_at), ', with no time limit'))
           || case when exists (select from odc.running as r where r.job_id = al.job_id and r.preempted_by = p_job_id)
                   then '; it is preempted for this one' else '' end,
           al.job_id, n.name, al.gpus, al.ends_at
      from odc.planned as pl
      join odc.node as n on n.name = any (pl.node_names)
      join odc.allocation as al on al.node_id = n.id
     where pl.job_id = p_job_id
       and (pl.planned_start_at is null or al.ends_at <= pl.planned_start_at)
     order by al.ends_at, al.job_id, al.rank
     limit 16
$$;
