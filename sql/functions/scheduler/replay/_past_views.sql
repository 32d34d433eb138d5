-- odc._past_views: the views of schema odc_past that are computed from other past rows. The free part of a node follows
-- from the allocations. A job existed if it was pending or running, or has ended since; it had ended if it was neither.
create or replace function odc._past_views()
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_columns text;
begin
    drop view odc_past._job;
    create view odc_past.running as
    select r.*, null::timestamptz as stop_sent_at, null::timestamptz as sent_ends_at, false as signalled from odc_past._running as r;

    create view odc_past.allocation as
    select a.job_id, a.rank, a.node_id, a.gpu_mask, a.gpus, a.cpus, a.mem_mib, a.ends_at,
           null::odc.member_state as state, null::integer as exit_code, null::integer as exit_signal, null::text as strike
      from odc_past.running as r
      join odc_past._allocation as a on a.job_id = r.job_id and a.rank < r.node_count;

    create view odc_past.node_free as
    select f.node_id, f.group_id, f.up,
           ((1::bigint << g.gpus) - 1) & ~coalesce(a.gpu_mask, 0) & ~coalesce(n.foreign_gpu_mask, 0) as gpu_mask,
           (g.gpus - coalesce(a.gpus, 0) - bit_count(coalesce(n.foreign_gpu_mask, 0)::bit(64)))::integer as gpus,
           (g.cpus - coalesce(a.cpus, 0) - coalesce(n.foreign_cpus, 0))::integer as cpus,
           (g.mem_mib - coalesce(a.mem_mib, 0) - coalesce(n.foreign_mem_mib, 0))::integer as mem_mib,
           coalesce(a.jobs, 0)::integer as jobs, 0 as ended
      from odc_past._node_free as f
      join odc_past.node_group as g on g.id = f.group_id
      join odc_past.node as n on n.id = f.node_id
      left join (select node_id, bit_or(gpu_mask) as gpu_mask, sum(gpus) as gpus, sum(cpus) as cpus,
                        sum(mem_mib) as mem_mib, count(*) as jobs
                   from odc_past.allocation group by node_id) as a on a.node_id = f.node_id;

    -- Only the expected starts that were recorded for scoring are kept.
    create view odc_past.eta as
    select distinct on (job_id) job_id, at, 0 as place, p10, p50, p90, exact
      from odc.prediction
     where at <= (select odc._past_at())
     order by job_id, at desc, id desc;

    select string_agg(case when a.attname in ('state', 'reason', 'end_detail', 'partition_id', 'attempt', 'eligible_at',
                                              'started_at', 'ended_at', 'node_names', 'exit_code', 'signal', 'ended_by')
                           then format('case when l.place = ''live'' then null else j.%1$I end as %1$I', a.attname)
                           when p.attname is not null
                           then format('case when h.id is null then j.%1$I else h.%1$I end as %1$I', a.attname)
                           else format('j.%I', a.attname) end, ', ' order by a.attnum)
      into v_columns
      from pg_attribute as a
      left join pg_attribute as p
        on p.attrelid = 'odc.job_past'::regclass and p.attname = a.attname and p.attname <> 'id' and p.attnum > 0
     where a.attrelid = 'odc.job'::regclass and a.attnum > 0 and not a.attisdropped;
    execute format(
        $sql$
        create view odc_past.job as
        select %s
          from odc.job as j
         cross join lateral (select odc._past_place(j.id, j.ended_at) as place) as l
          left join lateral (
               select p.*
                 from odc.job_past as p
                where p.id = j.id and p.past_at > (select odc._past_from())
                  and coalesce(not pg_visible_in_snapshot(p.past_xid, (select odc._past_snapshot())), true)
                order by p.past_id
                limit 1) as h on true
         where j.submitted_at <= (select odc._past_at())
           and l.place is not null
        $sql$, v_columns);
end;
$$;
