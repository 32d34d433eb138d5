-- odc.diagnose: the state of the system in numbers, for `odcctl diag`. Reads hot tables only.
-- Arguments  p_now  the time of the answer
-- Returns    JSON {at, leader, jobs, pending_tasks, oldest_pending_s, nodes, gpus, last_pass, planned, eta, last_event_id};
--            jobs counts rows by state (an array's pending tasks are one row), pending_tasks counts every task
create or replace function odc.diagnose(p_now timestamptz)
returns text
language sql stable as $$
    select json_build_object(
        'at', odc._iso(p_now),
        'leader', (select json_build_object('term', t.term, 'holder', t.holder, 'host', t.host,
                                            'taken_at', odc._iso(t.taken_at)) from odc.term as t),
        'jobs', (select json_object_agg(s.state, coalesce(r.jobs, 0) order by s.state)
                   from unnest('{PENDING,CONFIGURING,RUNNING,COMPLETING}'::odc.job_state[]) as s (state)
                   left join (select state, count(*) as jobs from odc.running group by state
                               union all
                              select 'PENDING', count(*) from odc.pending) as r on r.state = s.state),
        'pending_tasks', w.tasks,
        'oldest_pending_s', case when w.oldest <= p_now then floor(extract(epoch from p_now - w.oldest))::bigint end,
        'nodes', (select json_build_object('UP', count(*) filter (where state = 'UP'),
                                           'DRAIN', count(*) filter (where state = 'DRAIN'),
                                           'DOWN', count(*) filter (where state = 'DOWN'))
                    from odc.node as n where not odc._is_gone(n)),
        'gpus', (select json_build_object('total', coalesce(sum(n.gpus), 0),
                                          'used', coalesce(sum(n.gpus - f.gpus), 0))
                   from odc.node as n join odc.node_free as f on f.node_id = n.id
                  where not odc._is_gone(n)),
        'last_pass', (select json_build_object('id', p.id, 'at', odc._iso(p.at), 'looked', p.looked,
                                               'started', p.started, 'took_ms', p.took_ms)
                        from odc.pass as p order by p.id desc limit 1),
        'planned', (select count(*) from odc.planned),
        'eta', odc._eta_summary(p_now),
        'last_event_id', (select coalesce(max(id), 0) from odc.event))::text
      from (select coalesce(sum(case when tasks is null then 1 else odc._task_count(tasks) end), 0) as tasks,
                     min(queued_at) as oldest
              from odc.pending) as w
$$;
