-- Ended jobs, with the keys of the API; a range of tasks that ended before they started is one row.
create or replace view odc.ended_job as
select j.id,
       j.array_job_id,
       j.array_task_id,
       odc._cut_tasks(j.array_tasks) as array_tasks,
       j.name,
       j.kind,
       j.user_name as "user",
       j.uid,
       a.name as account,
       coalesce(pt.name, (select string_agg(m.name, ',' order by o.ord)
                            from unnest(j.partition_ids) with ordinality as o (id, ord)
                            join odc.partition as m on m.id = o.id),
                -- The partition was deleted since.
                (select d.name from odc.partition_past as d
                  where d.id = coalesce(j.partition_id, j.partition_ids[1]) order by d.past_id desc limit 1)) as partition,
       q.name as qos,
       j.state,
       j.reason,
       '[]'::json as why,
       null::bigint as priority,
       j.nice,
       j.submitted_at,
       j.eligible_at,
       j.begin_at,
       null::timestamptz as planned_start_at,
       j.started_at,
       null::timestamptz as checkpoint_at,
       j.ended_at,
       nullif(j.time_limit_s, 2147483647) as time_limit_s,
       coalesce(cardinality(j.node_names), s.node_count) as node_count,
       s.node_count_max,
       s.switches,
       s.switches_wait_s,
       s.gpus_per_node,
       case when s.components is null then coalesce(cardinality(j.node_names), s.node_count) * s.gpus_per_node
            else odc._component_gpus(s.components) end as gpus,
       case when s.gpus_per_node > 0 then
                coalesce(s.gpu_type, (select n.gpu_type from odc.node as n
                                       where n.name = j.node_names[1])) end as gpu_type,
       s.cpus_per_node,
       s.mem_per_node_mib,
       array_to_json(coalesce(j.node_names, '{}')) as node_names,
       coalesce(j.attempt, 0) as attempt,
       greatest(j.attempt - 1, 0) as restarts,
       j.exit_code,
       j.signal,
       j.end_detail,
       odc._preemption_of(j.id, null, case when j.attempt > 1 or j.state = 'PREEMPTED' then j.attempt + 1 end) as preemption,
       j.dependency,
       j.array_throttle,
       j.work_dir,
       j.stdout,
       j.stderr,
       j.comment,
       bk.name as booking,
       s.licences,
       case when s.components is not null then odc._component_rows(s.components, j.options) end as components,
       j.submitted_at as queued_at
  from odc.job as j
  left join odc.shape as s on s.id = j.shape_id
  left join odc.booking as bk on bk.id = s.booking_id
  left join odc.account as a on a.id = j.account_id
  left join odc.qos as q on q.id = j.qos_id
  left join odc.partition as pt on pt.id = j.partition_id
 where j.state is not null;
