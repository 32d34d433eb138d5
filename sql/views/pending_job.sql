-- Pending jobs, with the keys of the API; the pending range of an array is one row. Select only the
-- columns you need: the planner leaves out the joins of the others.
-- The reason is Slurm's word; planned and refusal come from the last pass, the rest from the job itself.
create or replace view odc.pending_job as
select p.job_id as id,
       case when p.tasks is null then j.array_job_id else p.job_id end as array_job_id,
       j.array_task_id,
       case when p.tasks is not null then odc._short_tasks(p.tasks, j.array_throttle) end as array_tasks,
       j.name,
       j.kind,
       j.user_name as "user",
       p.uid,
       a.name as account,
       case when cardinality(j.partition_ids) = 1 then pt.name
            else (select string_agg(m.name, ',' order by o.ord)
                    from unnest(j.partition_ids) with ordinality as o (id, ord)
                    join odc.partition as m on m.id = o.id) end as partition,
       q.name as qos,
       'PENDING'::odc.job_state as state,
       case when p.held is not null then
                coalesce(p.reason, case p.held when 'user' then 'JobHeldUser' else 'JobHeldAdmin' end)
            when p.dependency = 'never' then 'DependencyNeverSatisfied'
            when p.dependency = 'waiting' then 'Dependency'
            when not p.begun then coalesce(p.reason, 'BeginTime')
            when p.lacks is not null then case p.lacks when 'image' then 'ImageBuild' when 'disk' then 'DiskBusy' else 'SnapshotPending' end
            when p.open_count = 0 and p.tasks <@ coalesce(p.closed_tasks, '{}') then 'Dependency'
            when p.open_count = 0 then 'JobArrayTaskLimit'
            when pl.planned_start_at is not null then coalesce(pl.reason, 'Resources')
            when en.job_id is not null then 'Resources'
            when lm.reason is not null then lm.reason
            else coalesce(rf.reason, p.reason, 'None') end as reason,
       case when p.ready and en.job_id is not null
            then json_build_array(json_build_object('cause', 'node', 'text', odc._why_new_node(p.job_id)))
            when p.ready and coalesce(pl.reason, case when pl.job_id is null then lm.reason end) is not null
            then json_build_array(json_strip_nulls(json_build_object(
                     'cause', 'limit', 'text', odc._limit_short(coalesce(pl.reason, lm.reason), q.name, a.name, s.licences),
                     'limit', coalesce(pl.reason, lm.reason), 'until', odc._iso(pl.planned_start_at))))
            when p.ready and pl.job_id is null then coalesce(rf.why, '[]'::json)
            else odc._why_blocked(p.job_id) end as why,
       null::bigint as priority,
       p.nice,
       j.submitted_at,
       p.eligible_at,
       p.begin_at,
       case when p.ready then pl.planned_start_at end as planned_start_at,
       null::timestamptz as started_at,
       null::timestamptz as checkpoint_at,
       null::timestamptz as ended_at,
       nullif(p.time_limit_s, 2147483647) as time_limit_s,
       s.node_count,
       s.node_count_max,
       s.switches,
       s.switches_wait_s,
       s.gpus_per_node,
       case when s.components is null then s.node_count * s.gpus_per_node
            else odc._component_gpus(s.components) end as gpus,
       s.gpu_type,
       s.cpus_per_node,
       s.mem_per_node_mib,
       '[]'::json as node_names,
       p.attempt,
       p.attempt - 1 as restarts,
       null::integer as exit_code,
       null::integer as signal,
       null::text as end_detail,
       odc._preemption_of(p.job_id, null, nullif(p.attempt, 1)) as preemption,
       j.dependency,
       j.array_throttle,
       j.work_dir,
       j.stdout,
       j.stderr,
       j.comment,
       bk.name as booking,
       s.licences,
       case when s.components is not null then odc._component_rows(s.components, j.options) end as components,
       p.queued_at
  from odc.pending as p
  join odc.job as j on j.id = p.job_id
  left join odc.shape as s on s.id = p.shape_id
  left join odc.booking as bk on bk.id = s.booking_id
  left join odc.account as a on a.id = p.account_id
  left join odc.qos as q on q.id = p.qos_id
  left join odc.partition as pt on pt.id = j.partition_ids[1]
  left join odc.planned as pl on pl.job_id = p.job_id
  left join odc.elastic_need as en on en.job_id = p.job_id
  left join odc.limited as lm
    on lm.shape_id = p.shape_id and lm.time_limit_s = p.time_limit_s and lm.uid = p.uid
       and lm.account_id = p.account_id and lm.qos_id = p.qos_id
  left join (
      select r.shape_id, r.reason,
             json_build_array(json_strip_nulls(json_build_object(
                 'cause', case when r.head_job_id is null then 'node' else 'planned_job' end,
                 'text', r.detail,
                 'job_id', r.head_job_id,
                 'until', odc._iso(h.planned_start_at)))) as why
        from odc.refusal as r
        left join odc.planned as h on h.job_id = r.head_job_id
  ) as rf on rf.shape_id = p.shape_id;
