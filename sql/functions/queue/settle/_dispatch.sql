-- odc._dispatch: everything an executor needs to run one attempt, as JSON; see odcd.records.dispatch.Dispatch.
-- Only jobs that have such things have the keys `tmp_mib` and `component_nodes`: daemons of the last release, which run beside
-- this version during an upgrade, refuse keys that they do not know.
-- Returns a set and uses begin atomic, so that PostgreSQL inlines it: many attempts need one join, not ten joins each.
create or replace function odc._dispatch(
    p_job odc.job, p_term bigint, p_attempt integer, p_partition_id integer, p_started_at timestamptz,
    p_ends_at timestamptz, p_members jsonb)
returns table (body text)
language sql stable
begin atomic
    select case when coalesce(d.tmp_per_node_mib, 0) = 0 and d.components is null then d.body::text
                else (d.body::jsonb || jsonb_strip_nulls(jsonb_build_object(
                          'tmp_mib', nullif(d.tmp_per_node_mib, 0),
                          'component_nodes', jsonb_path_query_array(d.components, '$[*].node_count'))))::text end
      from (select json_build_object(
            'term', p_term, 'job_id', (p_job).id, 'attempt', p_attempt,
            'array_job_id', (p_job).array_job_id, 'array_task_id', (p_job).array_task_id,
            'array_min', d.task_min, 'array_max', d.task_max, 'array_count', d.task_count, 'array_step', d.task_step,
            'name', (p_job).name, 'user', (p_job).user_name, 'uid', (p_job).uid, 'gid', (p_job).gid,
            'account', a.name, 'partition', p.name, 'qos', q.name,
            'work_dir', (p_job).work_dir, 'umask', (p_job).umask, 'stdin', (p_job).stdin, 'stdout', (p_job).stdout,
            'stderr', (p_job).stderr, 'open_mode', (p_job).open_mode, 'script_digest', (p_job).script_digest,
            'environment_digest', (p_job).environment_digest, 'args', (p_job).args,
            'options', case when g.image is null then (p_job).options
                            else (p_job).options || jsonb_build_object('image', g.image) end,
            'submit_host', (p_job).submit_host, 'kind', (p_job).kind, 'ask', v.ask,
            'disk', case when m.id is not null
                         then json_build_object('claim', format('odc-volume-%s', m.id), 'name', k.name,
                                                'first', m.snapshot_id is null) end,
            'personal', case when v.ask -> 'shared_storage' = 'true' then format('odc-personal-%s', (p_job).uid) end,
            'booking', b.name, 'licences', s.licences,
            'restarts', p_attempt - 1, 'started_at', p_started_at, 'ends_at', nullif(p_ends_at, 'infinity'),
            'signal_number', (p_job).signal_number, 'signal_before_s', (p_job).signal_before_s,
            'signal_batch', (p_job).signal_batch, 'members', p_members) as body,
            s.tmp_per_node_mib, s.components
         from odc.account as a
         join odc.qos as q on q.id = (p_job).qos_id
         left join odc.partition as p on p.id = p_partition_id
         left join odc.shape as s on s.id = (p_job).shape_id
         left join odc.booking as b on b.id = s.booking_id
         left join odc.reservation as v on v.job_id = (p_job).id
         left join odc.disk_volume as m on m.job_id = (p_job).id and m.attempt = p_attempt
         left join odc.disk as k on k.id = m.disk_id
         left join odc.build as g on g.id = v.build_id
         left join odc.array_job as d on d.job_id = (p_job).array_job_id
        where a.id = (p_job).account_id) as d;
end;
