-- odc._gpu_use_json: the GPU usage of a job, as the API returns it; null if nothing is known.
-- Returns    over all its attempts that ran: held_gpu_s; seen_gpu_s: the measured part of that; busy_gpu_s; busy_ratio:
--            of the measured part; mem_peak_mib, energy_j; owed: number of attempts not stored yet; gave_up: why some
--            was not measured; now: of a running attempt, {at, util_ratio, mem_used_mib, idle_gpus, idle_since}: GPUs
--            idle for longer than gpu_meter allows
create or replace function odc._gpu_use_json(p_job_id bigint, p_now timestamptz)
returns json
language sql stable as $$
    select case when u.attempts > 0 or n.now is not null then json_build_object(
               'source', coalesce(u.source, m.source), 'held_gpu_s', round(u.held_s), 'seen_gpu_s', round(u.seen_s),
               'busy_gpu_s', round(u.busy_s), 'busy_ratio', round((u.busy_s / nullif(u.seen_s, 0))::numeric, 4),
               'mem_peak_mib', u.mem_peak_mib, 'energy_j', round(u.energy_j), 'owed', u.owed, 'gave_up', u.gave_up,
               'now', n.now) end
      from odc.gpu_meter as m
     cross join (select count(*) as attempts, max(g.source) as source,
                        coalesce(sum(g.gpus * coalesce(g.held_s, extract(epoch from p_now - g.running_at))), 0) as held_s,
                        coalesce(sum(g.gpus * g.covered_s) filter (where k.known), 0) as seen_s,
                        coalesce(sum(g.busy_gpu_s) filter (where k.known), 0) as busy_s,
                        max(g.mem_peak_mib) filter (where k.known) as mem_peak_mib, sum(g.energy_j) filter (where k.known) as energy_j,
                        count(*) filter (where g.ended_at is not null and coalesce(g.stored_at > p_now, true)) as owed,
                        (array_agg(g.gave_up order by g.attempt desc) filter (where g.gave_up is not null and g.stored_at <= p_now))[1] as gave_up
                   from odc.gpu_use as g
                  -- A query about the past must not include what was stored later.
                  cross join lateral (select coalesce(g.stored_at <= p_now, true) as known) as k
                  where g.job_id = p_job_id and coalesce(g.ended_at, g.seen_until) <= p_now) as u
      left join lateral (
           select json_build_object(
                      'at', odc._iso(w.at), 'util_ratio', round(w.util_ratio::numeric, 4), 'mem_used_mib', w.mem_used_mib,
                      'idle_gpus', i.gpus, 'idle_since', odc._iso(i.since)) as now
             from odc.gpu_now as w
             join odc.running as r on r.job_id = w.job_id and r.attempt = w.attempt
            cross join lateral (
                  select count(*) as gpus, min((e.value)::timestamptz) as since from jsonb_each_text(w.idle) as e
                   where (e.value)::timestamptz <= p_now - make_interval(secs => m.idle_after_s)) as i
            where w.job_id = p_job_id and w.at <= p_now and w.good_until > p_now) as n on true
$$;
