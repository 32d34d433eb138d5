-- odc.list_never_met: of these jobs, those with dependencies that can never be met, at most 20, and the first such dependency of each.
create or replace function odc.list_never_met(p_job_ids bigint[])
returns table (job_id bigint, text text)
language sql stable as $$
    select p.job_id, w.text
      from odc.pending as p
     cross join lateral (select d.text from odc._why_dependency(p.job_id) as d where d.text like 'can never %' limit 1) as w
     where p.job_id = any (p_job_ids) and p.dependency = 'never'
     order by p.job_id
     limit 20
$$;
