-- odc._render_reservations: reservations as the JSON array of the API, newest first.
-- Arguments  p_actor    for other users' reservations, connection details are left out. A Jupyter token gives access by
--                       itself: only the owner and operators get it; users whose keys were added can read it inside
--            p_history  include the history of each, oldest first
--            p_positions  as queue_positions returned them recently
-- It is one query, because each of its columns is one key of the answer.
create or replace function odc._render_reservations(p_ids bigint[], p_actor jsonb, p_history boolean, p_positions jsonb, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_pass_at  constant timestamptz := (select s.at from pass as s order by s.id desc limit 1);
    v_operator constant boolean := coalesce((p_actor ->> 'operator')::boolean, false);
    v_uid      constant integer := (p_actor ->> 'uid')::integer;
begin
    return (
        select coalesce(json_agg(row_to_json(x) order by x.id desc), '[]')::text
          from (
              select job.id, job.name, job.user_name as "user", job.uid, account.name as account,
                     part.name as partition, qos.name as qos, seen.status,
                     seen.state, case when seen.state = 'PENDING' then queued.reason else job.reason end as reason,
                     step.phase, _iso(step.phase_at) as phase_at,
                     case when step.lacking is not null then format('it waits (%s): %s', queued.reason, step.lacking)
                          else _reservation_message(job, reservation, seen.status, step.phase, placed.names,
                                                      case when seen.state = 'PENDING' then queued.reason end, p_now)
                               || coalesce(': ' || step.told, '') end as message,
                     shape.node_count * shape.gpus_per_node as gpus,
                     case when shape.gpus_per_node > 0 or shape.gpu_type is not null
                          then coalesce(shape.gpu_type, (select min(n.gpu_type) from node as n where n.name = any (placed.names))) end as gpu_type,
                     shape.node_count, shape.gpus_per_node, reservation.duration_s,
                     _iso(job.submitted_at) as created_at, _iso(reservation.launched_at) as launched_at,
                     _iso(reservation.expires_at) as expires_at,
                     _iso(job.ended_at) as ended_at, reservation.extensions, reservation.extended_s,
                     case when pending.job_id is not null then (p_positions ->> job.id::text)::integer end as queue_position,
                     _iso(case when queued.planned_start_at < p_now then p_now else queued.planned_start_at end) as planned_start_at,
                     case when pending.job_id is not null then coalesce(
                         (select _eta(e.p10, e.p50, e.p90, queued.planned_start_at, p_now) from eta as e where e.job_id = job.id),
                         _eta(null, null, null, queued.planned_start_at, p_now)) end as eta,
                     coalesce(placed.names, '{}') as node_names, coalesce(running.attempt, pending.attempt, job.attempt) as attempt,
                     reservation.ask ->> 'disk' as disk_name,
                     _disk_of_job(job.id, reservation.disk_id, pending.job_id is not null, pending.lacks) as disk_state,
                     case when reservation.ask ->> 'disk' is not null then 'disk'
                          when job.options -> 'pty' = 'true' then 'home' else 'temporary' end as storage,
                     coalesce(reservation.ask ->> 'image', build.image) as image,
                     case when v_operator or job.uid = v_uid then reservation.ask ->> 'build' end as build,
                     case when jupyter.state = 'running' and (v_operator or job.uid = v_uid)
                          then format('http://127.0.0.1:8888/lab?token=%s', keys.jupyter_token) end as jupyter_url,
                     jupyter.state as jupyter,
                     case when _may_enter(p_actor, job.uid, reservation) then jupyter.error end as jupyter_error,
                     -- A forwarded agent could be used by everyone who may enter.
                     case when entry.way = 'ssh'
                          then format(case when reservation.secondary_users = '{}' then 'ssh -A odc-%s' else 'ssh odc-%s' end, job.id)
                          end as ssh_command,
                     entry.way as connect,
                     case when entry.way = 'ssh' then coalesce(
                         (select array_agg(concat(case when host.address like '%:%' then format('[%s]', host.address) else host.address end,
                                                  ':', port.port) order by host.n)
                            from box_port as port, unnest(port.addresses) with ordinality as host (address, n)
                           where port.job_id = job.id and port.attempt = running.attempt), '{}') else '{}' end as ssh_addresses,
                     case when keys.job_id is null then '{}' else array[keys.host_public] end as host_keys,
                     reservation.ask ->> 'github_user' as github_user, reservation.secondary_users,
                     case when seen.status = 'failed'
                          then coalesce(job.end_detail, running.exit_detail, job.reason, seen.state::text) end as failure_reason,
                     (select coalesce(json_agg(json_build_object('minutes', n.minutes, 'at', _iso(n.sent_at)) order by n.sent_at), '[]')
                        from reservation_warning as n where n.job_id = job.id and n.sent_at is not null) as warnings,
                     notice.text as node_notice, _iso(notice.until_at) as node_notice_until,
                     idle.idle_s, oom.oom_count, _iso(oom.last_oom_at) as last_oom_at,
                     coalesce(reservation.ask -> 'labels', '{}') as labels, job.comment,
                     history.phases,
                     case when p_history then _reservation_history(job.id) end as history
                from job
                join reservation on reservation.job_id = job.id
                left join pending on pending.job_id = job.id
                left join running on running.job_id = job.id
                left join pending_job as queued on queued.id = job.id and pending.job_id is not null
                left join shape on shape.id = coalesce(pending.shape_id, running.shape_id, job.shape_id)
                left join account on account.id = job.account_id
                left join qos on qos.id = job.qos_id
                left join box_key as keys on keys.job_id = job.id
                left join build on build.id = reservation.build_id
                left join partition as part on part.id = coalesce(running.partition_id, job.partition_id, shape.partition_ids[1])
               cross join lateral (
                     select coalesce(case when running.job_id is not null and running.intent is not null then 'COMPLETING'::job_state
                                          else running.state end,
                                     job.state, 'PENDING') as state,
                            _reservation_status(coalesce(running.state, job.state, 'PENDING'), _seen_intent(running.job_id, running.intent),
                                                coalesce(v_pass_at >= pending.queued_at or pending.lacks is not null, false)) as status) as seen
               cross join lateral (
                     select case when running.job_id is not null
                                 then array(select n.name from allocation as l join node as n on n.id = l.node_id
                                             where l.job_id = job.id order by l.rank)
                                 else job.node_names end as names) as placed
               cross join lateral (
                     select count(*) filter (where e.oom)::integer as oom_count, max(e.ended_at) filter (where e.oom) as last_oom_at
                       from box_restart as e where e.job_id = job.id) as oom
                left join lateral (
                     select * from _start_progress(job.id, running.attempt, running.node_count)
                      where running.intent is null and reservation.launched_at is null) as progress on true
               cross join lateral _reservation_phases(job, reservation, running, build) as history
               cross join lateral (select case when pending.lacks = 'image' then _build_text(build.state, build.step) end as text) as building
               cross join lateral (
                     select case when pending.job_id is not null then case when building.text is not null then 'image_build' end
                                 when running.job_id is null then null
                                 when running.intent is not null then 'cleaning_up'
                                 when reservation.launched_at is null then coalesce(progress.phase, 'starting') end as phase,
                            case when running.intent is not null then running.intent_at
                                 when building.text is not null then coalesce(build.started_at, job.submitted_at)
                                 when running.job_id is not null and reservation.launched_at is null
                                 then coalesce(progress.at, running.started_at) end as phase_at,
                            progress.message as told,
                            case when seen.status = 'queued' and pending.lacks is not null
                                 then (select l.text from _why_lacking(job.id, pending.lacks) as l limit 1) end as lacking) as step
               cross join lateral (
                     select case when seen.status <> 'active' or reservation.ask -> 'preserve_entrypoint' = 'true' then null
                                 when reservation.ask ? 'ssh_keys' or keys.job_id is not null
                                 then case when _may_enter(p_actor, job.uid, reservation) then 'ssh' end
                                 when job.options -> 'pty' = 'true' and (v_operator or job.uid = v_uid) then 'terminal' end as way) as entry
                left join lateral (
                     select extract(epoch from p_now - l.idle_since)::integer as idle_s from box_look as l
                      where l.job_id = job.id and l.attempt = running.attempt and l.good_until > p_now
                        and seen.status = 'active') as idle on true
                left join lateral _jupyter_state(reservation, running.attempt) as jupyter on seen.status = 'active'
                left join _node_notices(p_now) as notice on notice.job_id = job.id
               where job.id = any (p_ids)) as x);
end;
$$;
