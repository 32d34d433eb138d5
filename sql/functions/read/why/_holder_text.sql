-- odc._holder_text: the resources of a running job that another job waits for, until when, and the effect of preemption.
-- Arguments  p_gpus, p_cpus  on each of the nodes;  p_names  the nodes, folded;  p_nodes  how many
--            p_for           the job that waits;  p_now  null: leave out the end of an exemption
create or replace function odc._holder_text(
    p_job_id bigint, p_gpus integer, p_cpus integer, p_names text, p_nodes bigint, p_until timestamptz, p_for bigint,
    p_now timestamptz)
returns text
language sql stable as $$
    select format('job %s holds %s GPUs and %s CPUs %s %s%s', p_job_id, p_gpus, p_cpus,
                  case when p_nodes = 1 then 'of' else 'on each of' end, p_names,
                  coalesce(' until ' || odc._iso(p_until), ', with no time limit'))
           || coalesce((
               select case when r.preempted_by = p_for then '; it is preempted for this one'
                           when e.ends_at > p_now then format('; it may be preempted from %s on', odc._iso(e.ends_at)) end
                 from odc.running as r
                 join odc.pending as p on p.job_id = p_for
                 join odc.qos as q on q.id = p.qos_id
                 left join odc.qos as v on v.id = r.qos_id and v.exempt_s > 0 and v.id = any (q.preempts)
                cross join lateral (select r.running_at + make_interval(secs => v.exempt_s) as ends_at) as e
                where r.job_id = p_job_id), '')
$$;
