-- odc.measure_tally: the counters of the tally; see sql/functions/cluster/measure/README.md for the form.
create or replace function odc.measure_tally(p_now timestamptz)
returns table (metric text, labels text[], value double precision)
language sql stable as $$
    with partition as materialized (
        select t.name from odc.partition as t
    ), zero (metric, labels) as (
        select m, array[t.name] from partition as t cross join unnest('{odcd_jobs_submitted_total,odcd_jobs_started_total}'::text[]) as m
         union all
        select 'odcd_job_requeues_total', array[t.name, r]
          from partition as t cross join unnest('{Requeued,Preempted,NodeFail,JobLaunchFailure}'::text[]) as r
         union all
        select 'odcd_job_preemptions_total', array[t.name, q.name]
          from partition as t cross join odc.qos as q where q.preempts <> '{}' and q.deleted_at is null
         union all
        select 'odcd_jobs_finished_total', array[s::text, p.partition, p.account]
          from (select t.labels[2] as partition, t.labels[3] as account from odc.tally as t where t.metric = 'odcd_jobs_finished_total'
                 union
                select t.name, 'default' from partition as t) as p
         cross join unnest(enum_range('COMPLETED'::odc.job_state, null)) as s
         union all
        select 'odcd_book_repairs_total', array[k] from unnest('{array,dependency,member,node}'::text[]) as k
         union all
        select 'odcd_orphans_found_total', array[k] from unnest('{pod,volume,snapshot}'::text[]) as k
         union all
        select 'odcd_planned_starts_moved_total', array[c] from unnest('{order,overtaken,overrun,preemption}'::text[]) as c
         union all
        select 'odcd_planned_starts_kept_total', '{}'
    ), histogram as (
        select h.metric, h.labels, h.counts, h.sum_ms from odc.tally_histogram as h
         union all
        select z.metric, z.labels, array_fill(0::bigint, array[cardinality(odc._tally_bounds(z.metric)) + 1]), 0
          from (select 'odcd_job_queue_wait_seconds' as metric, array[t.name] as labels from partition as t
                 union all
                select 'odcd_reservation_phase_seconds', array[p] from unnest(odc._phases()) as p where p <> 'cleaning_up') as z
         where not exists (select from odc.tally_histogram as h where h.metric = z.metric and h.labels = z.labels)
    )
    select coalesce(t.metric, z.metric), coalesce(t.labels, z.labels),
           case when t.metric = 'odcd_gpu_seconds_total' then coalesce(t.told, 0) / 1000.0 else coalesce(t.value, 0) end::double precision
      from odc.tally as t
      full join zero as z on z.metric = t.metric and z.labels = t.labels
     union all
    select 'odcd_tally_events_aside', '{}', count(*)::double precision from odc.tally_aside
     union all
    select h.metric || '_bucket', h.labels || coalesce(b.bounds[c.n]::text, '+Inf'),
           (sum(c.count) over (partition by h.metric, h.labels order by c.n))::double precision
      from histogram as h
     cross join lateral (select odc._tally_bounds(h.metric) as bounds) as b
     cross join lateral unnest(h.counts) with ordinality as c (count, n)
     union all
    select h.metric || '_count', h.labels, (select sum(c) from unnest(h.counts) as c)::double precision from histogram as h
     union all
    select h.metric || '_sum', h.labels, h.sum_ms / 1000.0 from histogram as h
$$;
