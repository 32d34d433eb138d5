-- odc._preemption_text: running.preemption as a sentence: "preempted by job 12 (QOS urgent) after 3 h; 24
-- GPU-hours lost". Null if p_preemption is null.
create or replace function odc._preemption_text(p_preemption jsonb)
returns text
language sql immutable as $$
    select format('preempted by job %s (QOS %s) after %s; %s lost', p_preemption ->> 'by', p_preemption ->> 'qos',
                  odc._span((p_preemption ->> 'ran_s')::bigint),
                  odc._unit_hours(coalesce((p_preemption ->> 'lost_gpu_s')::bigint, (p_preemption ->> 'lost_cpu_s')::bigint),
                                  case when p_preemption ? 'lost_cpu_s' then 'CPU' else 'GPU' end))
     where p_preemption is not null
$$;
