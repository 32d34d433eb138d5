-- odc.list_plan: the planned starts of the last pass, earliest first.
-- Returns    JSON {at, pass_id, jobs: [{id, array_…, name, user, account, partition, node_count, gpus_per_node, gpu_type, components, time_limit_s,
--            planned_start_at (null: no end in sight), node_names, detail, moved_by_pass, eta}]}
create or replace function odc.list_plan(p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    return json_build_object(
        'at', _iso(p_now),
        'pass_id', (select s.id from pass as s where s.at <= p_now order by s.at desc, s.id desc limit 1),
        'jobs', coalesce((
            select json_agg(json_build_object(
                       'id', j.id, 'array_job_id', j.array_job_id, 'array_task_id', j.array_task_id,
                       'array_tasks', j.array_tasks, 'name', j.name, 'user', j.user, 'account', j.account, 'partition', j.partition,
                       'node_count', j.node_count, 'node_count_max', j.node_count_max,
                       'gpus_per_node', j.gpus_per_node, 'gpu_type', j.gpu_type, 'components', j.components,
                       'time_limit_s', j.time_limit_s,
                       'planned_start_at', _iso(case when p.planned_start_at is not null then greatest(p.planned_start_at, p_now) end), 'node_names', p.node_names,
                       'detail', p.detail, 'moved_by_pass', p.pass_id,
                       'eta', coalesce((select _eta(e.p10, e.p50, e.p90, p.planned_start_at, p_now) from eta as e where e.job_id = p.job_id),
                                    _eta(null, null, null, p.planned_start_at, p_now)))
                   order by p.planned_start_at nulls last, p.job_id)
              from planned as p
              join pending_job as j on j.id = p.job_id
              join pending as w on w.job_id = p.job_id and w.ready), '[]'))::text;
end;
$$;
