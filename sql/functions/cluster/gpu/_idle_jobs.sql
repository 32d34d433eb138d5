-- odc._idle_jobs: running jobs with allocated GPUs that have been idle for longer than gpu_meter allows, as far as
-- known now. For dev servers whose GPUs are not measured, the observations of odc.note_look are used.
-- Returns    gpus: allocated to it; idle_gpus: the idle ones; idle_since: of the one idle longest; lost_gpu_s: their
--            total idle time; alone_since: of a dev server, since when no use of it at all was observed
create or replace function odc._idle_jobs(p_now timestamptz)
returns table (
    job_id bigint, gpus integer, idle_gpus integer, idle_since timestamptz, lost_gpu_s double precision, alone_since timestamptz)
language sql stable as $$
    select r.job_id, r.node_count * s.gpus_per_node, i.gpus, i.since, i.lost_s, l.idle_since
      from odc.running as r
      join odc.shape as s on s.id = r.shape_id and s.gpus_per_node > 0
     cross join odc.gpu_meter as m
      left join odc.gpu_now as g on g.job_id = r.job_id and g.attempt = r.attempt and g.at <= p_now and g.good_until > p_now
      left join odc.box_look as l on l.job_id = r.job_id and l.attempt = r.attempt and l.at <= p_now and l.good_until > p_now
     cross join lateral (
           select count(*)::integer as gpus, min(x.since) as since, sum(extract(epoch from p_now - x.since))::double precision as lost_s
             from (select (e.value)::timestamptz as since from jsonb_each_text(g.idle) as e
                    union all
                   select l.idle_since from generate_series(1, r.node_count * s.gpus_per_node)
                    where g.job_id is null and l.idle_since is not null) as x
            where x.since <= p_now - make_interval(secs => m.idle_after_s)) as i
     where r.state = 'RUNNING' and i.gpus > 0
$$;
