-- odc.measure_reservations: live dev servers by phase, and overdue ends; see sql/functions/cluster/measure/README.md
-- for the form.
create or replace function odc.measure_reservations(p_now timestamptz)
returns table (metric text, labels text[], value double precision)
language sql stable as $$
    with live as materialized (
        select odc._reservation_status('PENDING', null, coalesce((select s.at >= p.queued_at from odc.pass as s order by s.id desc limit 1), false)
                                                        or p.lacks is not null) as status,
               -- A reservation that waits for a disk waits for its user's other dev server, or for a snapshot: it has no resources yet.
               case p.lacks when 'image' then 'image_build' else 'queued' end as phase,
               -- With an image, since its build began: before that other builds run, or none does, and other metrics show that.
               case when p.lacks is distinct from 'image' then p.queued_at
                    when m.started_at is not null then greatest(p.queued_at, m.started_at)
                    when exists (select from odc.build as o where o.state = 'building') then p_now
                    else p.queued_at end as at
          from odc.reservation as v
          join odc.pending as p on p.job_id = v.job_id
          left join odc.build as m on m.id = v.build_id
         union all
        select odc._reservation_status(r.state, odc._seen_intent(r.job_id, r.intent), true),
               case when r.intent is not null or r.state = 'COMPLETING' then 'cleaning_up' when v.launched_at is not null then 'active'
                    else coalesce(b.phase, 'starting') end,
               case when r.intent is not null or r.state = 'COMPLETING' then coalesce(r.intent_at, r.exited_at, r.started_at)
                    when v.launched_at is not null then v.launched_at else coalesce(b.at, r.started_at) end
          from odc.running as r
          join odc.reservation as v on v.job_id = r.job_id
          left join lateral odc._start_progress(r.job_id, r.attempt, r.node_count) as b on r.intent is null and v.launched_at is null
    )
    select 'odcd_reservations', array[s], count(b.at)::double precision
      from unnest('{pending,queued,preparing,active,expired,cancelled,failed}'::text[]) as s
      left join live as b on b.status = s
     group by s
     union all
    select m.metric, array[p.phase], case m.metric when 'odcd_reservation_phase' then p.count else p.oldest_s end
      from (select f as phase, count(b.at)::double precision as count,
                   coalesce(greatest(0, date_part('epoch', p_now - min(b.at))), 0) as oldest_s
              from unnest(odc._phases()) as f left join live as b on b.phase = f group by f) as p
     cross join (values ('odcd_reservation_phase'), ('odcd_reservation_phase_oldest_seconds')) as m (metric)
     union all
    select 'odcd_expiry_lag_seconds', '{}', coalesce(date_part('epoch', p_now - min(r.ends_at)), 0)
      from odc.running as r where r.ends_at < p_now
$$;
