-- odc._reservation_phases: the phases of a reservation and how long each took, as a JSON array in the order of their starts.
-- Arguments  p_running, p_build  null if it does not run, has no image build
-- Returns    one row; null if no phase has begun
create or replace function odc._reservation_phases(
    p_job odc.job, p_reservation odc.reservation, p_running odc.running, p_build odc.build)
returns table (phases json)
language sql stable as $$
    select json_agg(json_build_object(
               'phase', o.phase, 'at', odc._iso(o.at),
               'took_s', round(extract(epoch from o.until - o.at), 3)) order by o.at, o.n)
      from (select 0 as n, 'image_build' as phase,
                   greatest(p_job.submitted_at, coalesce(p_build.started_at, p_job.submitted_at)) as at,
                   coalesce(p_build.ended_at, p_job.ended_at) as until
             where p_build.id is not null and (p_build.ended_at is null or p_build.ended_at > p_job.submitted_at)
             union all
            select 1, 'queued', p_job.submitted_at, coalesce(p_running.started_at, p_job.started_at, p_job.ended_at)
             union all
            select 2, 'starting', coalesce(p_running.started_at, p_job.started_at),
                   coalesce((select min(e.at) from odc.box_phase as e
                              where e.job_id = p_job.id and e.attempt = coalesce(p_running.attempt, p_job.attempt)),
                            p_reservation.launched_at, p_job.ended_at)
             union all
            select 3, e.phase, min(e.at),
                   coalesce(lead(min(e.at)) over (order by min(e.at)), p_reservation.launched_at, p_running.intent_at,
                            p_job.ended_at)
              from odc.box_phase as e
             where e.job_id = p_job.id and e.attempt = coalesce(p_running.attempt, p_job.attempt)
             group by e.phase
             union all
            select 3, 'disk', m.made_at, coalesce(m.published_at, m.over_at)
              from odc.disk_volume as m
             where m.job_id = p_job.id and m.attempt = coalesce(p_running.attempt, p_job.attempt)
             union all
            select 4, 'active', p_reservation.launched_at, coalesce(p_running.intent_at, p_job.ended_at)
             union all
            select 5, 'cleaning_up', p_running.intent_at, null) as o
     where o.at is not null
$$;
