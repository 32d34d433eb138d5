-- odc._job_notification: what a notification says about a job: live or ended.
-- Returns    JSON: job (as users write it), name, user, account, partition, state, reason, exit_code, signal, queued_s, run_s,
--            time_limit_s, nodes, at, and of a requeued job last_state; without what is null
create or replace function odc._job_notification(p_job_id bigint, p_now timestamptz)
returns jsonb
language sql stable as $$
    select jsonb_strip_nulls(jsonb_build_object(
               'job', case when j.array_job_id is null then j.id::text
                           else format('%s_%s', j.array_job_id,
                                       coalesce(j.array_task_id::text, format('[%s]', coalesce(j.array_tasks, p.tasks::text)))) end,
               'name', j.name, 'user', j.user_name, 'account', a.name, 'partition', t.name,
               'state', coalesce(j.state::text, r.state::text, 'PENDING'),
               'reason', coalesce(j.end_detail, j.reason, p.reason),
               'exit_code', j.exit_code, 'signal', j.signal,
               'queued_s', floor(extract(epoch from coalesce(r.started_at, j.started_at, j.ended_at, p_now) - j.submitted_at)),
               'run_s', floor(extract(epoch from coalesce(j.ended_at, p_now) - coalesce(r.started_at, j.started_at))),
               'time_limit_s', coalesce(r.time_limit_s, j.time_limit_s),
               'nodes', coalesce(to_jsonb(j.node_names),
                                 (select jsonb_agg(n.name order by l.rank)
                                    from odc.allocation as l join odc.node as n on n.id = l.node_id where l.job_id = j.id)),
               'last_state', case when p.job_id is not null then (select t.state from odc.attempt as t
                                                                   where t.job_id = j.id order by t.attempt desc limit 1) end,
               'at', odc._iso(p_now)))
      from odc.job as j
      left join odc.running as r on r.job_id = j.id
      left join odc.pending as p on p.job_id = j.id
      left join odc.account as a on a.id = j.account_id
      left join odc.partition as t on t.id = coalesce(r.partition_id, j.partition_id)
     where j.id = p_job_id
$$;
