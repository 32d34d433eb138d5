-- odc._preemption_of: the last preemption of a job, as the API returns it: the content of running.preemption, and a
-- sentence.
-- Arguments  p_now_going  of a running job: its running.preemption
--            p_before     search the attempts before this one; null: do not search
create or replace function odc._preemption_of(p_job_id bigint, p_now_going jsonb, p_before integer)
returns jsonb
language sql stable as $$
    select p.details || jsonb_build_object('text', odc._preemption_text(p.details))
      from (select coalesce(p_now_going, case when p_before is not null then (
                       select t.preemption from odc.attempt as t
                        where t.job_id = p_job_id and t.attempt < p_before and t.preemption is not null
                        order by t.attempt desc limit 1) end) as details) as p
$$;
