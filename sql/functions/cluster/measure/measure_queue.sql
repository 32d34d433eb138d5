-- odc.measure_queue: live jobs by state, their reasons and waits; see sql/functions/cluster/measure/README.md for the
-- form. Reasons are those of odc.pending_job, computed per class of equal jobs and not per job.
create or replace function odc.measure_queue(p_now timestamptz)
returns table (metric text, labels text[], value double precision)
language sql stable as $$
    with class as materialized (
        select p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id, w.own, w.planned, w.lacks, p.reason,
               sum(w.tasks) as tasks, min(p.eligible_at) filter (where p.ready) as since
          from odc.pending as p
          left join odc.planned as h on h.job_id = p.job_id
         cross join lateral (
               select case when p.held is not null then coalesce(p.reason, case p.held when 'user' then 'JobHeldUser' else 'JobHeldAdmin' end)
                           when p.dependency = 'never' then 'DependencyNeverSatisfied'
                           when p.dependency = 'waiting' then 'Dependency'
                           when not p.begun then coalesce(p.reason, 'BeginTime')
                           when p.lacks is not null then
                               case p.lacks when 'image' then 'ImageBuild' when 'disk' then 'DiskBusy' else 'SnapshotPending' end
                           when p.open_count = 0 and p.tasks <@ coalesce(p.closed_tasks, '{}') then 'Dependency'
                           when p.open_count = 0 then 'JobArrayTaskLimit' end as own,
                      h.planned_start_at is not null as planned, h.reason as lacks,
                      case when p.tasks is null then 1 else odc._task_count(p.tasks) end as tasks) as w
         group by p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id, w.own, w.planned, w.lacks, p.reason
    ), shown as materialized (
        select s.partition_ids[1] as partition_id, c.tasks, c.since,
               coalesce(c.own, c.lacks, case when c.planned then 'Resources' end, l.reason, f.reason, c.reason, 'None') as reason,
               c.own is null and coalesce(c.lacks, case when not c.planned then l.reason end) is not null or c.own = 'JobArrayTaskLimit' as at_limit
          from class as c
          join odc.shape as s on s.id = c.shape_id
          left join odc.limited as l
            on l.shape_id = c.shape_id and l.time_limit_s = c.time_limit_s and l.uid = c.uid and l.account_id = c.account_id
               and l.qos_id = c.qos_id
          left join odc.refusal as f on f.shape_id = c.shape_id
    ), state as (
        select t.partition_id, 'PENDING'::odc.job_state as state, sum(t.tasks) as jobs from shown as t group by t.partition_id
         union all
        select r.partition_id, r.state, count(*) from odc.running as r group by r.partition_id, r.state
    ), head as (
        select h.job_id from odc.planned as h order by h.planned_start_at nulls last, h.job_id limit 8
    )
    select 'odcd_jobs', array[s.state::text, t.name], coalesce(n.jobs, 0)::double precision
      from odc.partition as t
     cross join unnest('{PENDING,CONFIGURING,RUNNING,COMPLETING}'::odc.job_state[]) as s (state)
      left join state as n on n.partition_id = t.id and n.state = s.state
     union all
    select 'odcd_job_oldest_wait_seconds', array[t.name],
           coalesce(greatest(0, date_part('epoch', p_now - (select min(o.since) from shown as o where o.partition_id = t.id))), 0)
      from odc.partition as t
     union all
    select 'odcd_jobs_pending', array[z.reason], sum(z.tasks)::double precision
      from (select o.reason, o.tasks from shown as o
             union all
            select u, 0 from unnest('{None,Resources,Priority,Dependency,DependencyNeverSatisfied,BeginTime,JobHeldUser,JobHeldAdmin,JobArrayTaskLimit,ImageBuild,DiskBusy,SnapshotPending}'::text[]) as u) as z
     group by z.reason
     union all
    select 'odcd_jobs_at_limit', array[z.reason], sum(z.tasks)::double precision
      from (select o.reason, o.tasks from shown as o where o.at_limit
             union all
            select 'JobArrayTaskLimit', 0
             union all
            select odc._limit_reason(l.scope, l.per, l.what), 0 from odc.resource_limit as l where l.what <> 'submitted') as z
     where z.reason is not null
     group by z.reason
     union all
    select 'odcd_planned_starts', '{}', count(*)::double precision from odc.planned as h where h.planned_start_at is not null
     union all
    select 'odcd_why_causes', array[c.cause], count(c.n)::double precision
      from (select z as cause, null::integer as n
              from unnest('{running_job,planned_job,limit,dependency,booking,node,hold,begin,disk,image,preempted}'::text[]) as z
             union all
            select w ->> 'cause', 1 from head as h cross join lateral json_array_elements(odc._why_blocked(h.job_id)) as w) as c
     group by c.cause
$$;
