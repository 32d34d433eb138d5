-- odc._phase_spans: the phases that a reservation's attempt has completed, once it is active or over.
-- Returns    took_s: seconds; 0 for a phase that was reported at the same moment as the next
create or replace function odc._phase_spans(p_job_id bigint, p_attempt integer, p_started_at timestamptz, p_over boolean)
returns table (phase text, took_s double precision)
language sql stable as $$
    select o.phase, greatest(0, date_part('epoch', o.until - o.at))
      from odc.job as j
      join odc.reservation as v on v.job_id = j.id
      left join odc.build as m on m.id = v.build_id
     cross join lateral (
           select 'queued' as phase, j.submitted_at as at, p_started_at as until where not p_over
            union all
           select 'image_build', greatest(j.submitted_at, m.started_at), m.ended_at where not p_over and m.ended_at > j.submitted_at
            union all
           select 'starting', p_started_at,
                  coalesce((select min(b.at) from odc.box_phase as b where b.job_id = j.id and b.attempt = p_attempt), v.launched_at)
            where not p_over
            union all
           select b.phase, min(b.at), coalesce(lead(min(b.at)) over (order by min(b.at)), v.launched_at)
             from odc.box_phase as b where not p_over and b.job_id = j.id and b.attempt = p_attempt group by b.phase
            union all
           select 'disk', d.made_at, coalesce(d.published_at, d.over_at)
             from odc.disk_volume as d where not p_over and d.job_id = j.id and d.attempt = p_attempt
            union all
           select 'active', v.launched_at, j.ended_at where p_over) as o
     where j.id = p_job_id and o.at is not null and o.until is not null
$$;
