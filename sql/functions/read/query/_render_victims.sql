-- odc._render_victims: the jobs that a plan ends for one job, as the previews of the API return them; highest cost first.
-- Arguments  p_victims, p_for, p_costs  as decide returns them;  p_job_id  the preemptor
create or replace function odc._render_victims(
    p_now timestamptz, p_victims bigint[], p_for bigint[], p_costs bigint[], p_job_id bigint)
returns jsonb
language sql stable as $$
    select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'job_id', t.job_id, 'user', t.user_name, 'qos', t.qos, 'mode', t.mode, 'ran_s', t.ran_s, 'grace_s', t.grace_s,
               'lost_gpu_s', case when t.gpus > 0 then t.lost_s end, 'lost_cpu_s', case when t.gpus = 0 then t.lost_s end,
               'text', format('job %s of %s (QOS %s) after %s: %s lost; %s', t.job_id, t.user_name, t.qos, odc._span(t.ran_s),
                              odc._unit_hours(t.lost_s, case when t.gpus > 0 then 'GPU' else 'CPU' end),
                              case t.mode when 'requeue' then 'it goes back to the queue' else 'it ends for good' end)))
           order by t.cost desc, t.job_id), '[]')
      from (select v.job_id, v.cost, v.cost / 1000 as lost_s, j.user_name, q.name as qos, q.grace_s,
                   case when q.preempt_mode = 'requeue' and j.requeue then 'requeue' else 'cancel' end as mode,
                   floor(extract(epoch from p_now - r.started_at))::bigint as ran_s,
                   (select sum(a.gpus) from odc.allocation as a where a.job_id = v.job_id) as gpus
              from unnest(p_victims, p_for, p_costs) as v (job_id, by, cost)
              join odc.running as r on r.job_id = v.job_id
              join odc.job as j on j.id = v.job_id
              join odc.qos as q on q.id = r.qos_id
             where v.by = p_job_id) as t
$$;
