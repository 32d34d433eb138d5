-- Running jobs, with the keys of the API. gpu_type is that of their allocated nodes.
create or replace view odc.running_job as
select r.job_id as id,
       j.array_job_id,
       j.array_task_id,
       null::text as array_tasks,
       j.name,
       j.kind,
       j.user_name as "user",
       r.uid,
       a.name as account,
       pt.name as partition,
       q.name as qos,
       r.state,
       null::text as reason,
       '[]'::json as why,
       null::bigint as priority,
       r.nice,
       j.submitted_at,
       r.eligible_at,
       j.begin_at,
       null::timestamptz as planned_start_at,
       r.started_at,
       r.checkpoint_at as checkpoint_at,
       null::timestamptz as ended_at,
       nullif(r.time_limit_s, 2147483647) as time_limit_s,
       r.node_count,
       s.node_count_max,
       s.switches,
       s.switches_wait_s,
       s.gpus_per_node,
       case when s.components is null then r.node_count * s.gpus_per_node
            else odc._component_gpus(s.components) end as gpus,
       case when s.gpus_per_node > 0 then
                coalesce(s.gpu_type, (select min(n.gpu_type) from odc.allocation as al
                                        join odc.node as n on n.id = al.node_id
                                       where al.job_id = r.job_id)) end as gpu_type,
       s.cpus_per_node,
       s.mem_per_node_mib,
       array_to_json(array(select n.name from odc.allocation as al join odc.node as n on n.id = al.node_id
                            where al.job_id = r.job_id order by al.rank)) as node_names,
       r.attempt,
       r.attempt - 1 as restarts,
       null::integer as exit_code,
       null::integer as signal,
       null::text as end_detail,
       odc._preemption_of(r.job_id, r.preemption, nullif(r.attempt, 1)) as preemption,
       j.dependency,
       j.array_throttle,
       j.work_dir,
       j.stdout,
       j.stderr,
       j.comment,
       bk.name as booking,
       s.licences,
       case when s.components is not null then odc._component_rows(s.components, j.options) end as components,
       r.queued_at
  from odc.running as r
  join odc.job as j on j.id = r.job_id
  left join odc.shape as s on s.id = r.shape_id
  left join odc.booking as bk on bk.id = s.booking_id
  left join odc.account as a on a.id = r.account_id
  left join odc.qos as q on q.id = r.qos_id
  left join odc.partition as pt on pt.id = r.partition_id;
