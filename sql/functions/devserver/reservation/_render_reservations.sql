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
              select j.id, j.name, j.user_name as "user", j.uid, a.name as account, pt.name as partition, q.name as qos, w.status,
                     w.state, case when w.state = 'PENDING' then b.reason else j.reason end as reason,
                     f.phase, _iso(f.phase_at) as phase_at,
                     case when f.lacking is not null then format('it waits (%s): %s', b.reason, f.lacking)
                          else _reservation_message(j, v, w.status, f.phase, g.names, case when w.state = 'PENDING' then b.reason end, p_now)
                               || coalesce(': ' || f.told, '') end as message,
                     s.node_count * s.gpus_per_node as gpus,
                     case when s.gpus_per_node > 0 or s.gpu_type is not null
                          then coalesce(s.gpu_type, (select min(n.gpu_type) from node as n where n.name = any (g.names))) end as gpu_type,
                     s.node_count, s.gpus_per_node, v.duration_s,
                     _iso(j.submitted_at) as created_at, _iso(v.launched_at) as launched_at, _iso(v.expires_at) as expires_at,
                     _iso(j.ended_at) as ended_at, v.extensions, v.extended_s,
                     case when p.job_id is not null then (p_positions ->> j.id::text)::integer end as queue_position,
                     _iso(case when b.planned_start_at < p_now then p_now else b.planned_start_at end) as planned_start_at,
                     case when p.job_id is not null then coalesce(
                         (select _eta(e.p10, e.p50, e.p90, b.planned_start_at, p_now) from eta as e where e.job_id = j.id),
                         _eta(null, null, null, b.planned_start_at, p_now)) end as eta,
                     coalesce(g.names, '{}') as node_names, coalesce(r.attempt, p.attempt, j.attempt) as attempt,
                     v.ask ->> 'disk' as disk_name, _disk_of_job(j.id, v.disk_id, p.job_id is not null, p.lacks) as disk_state,
                     case when v.ask ->> 'disk' is not null then 'disk'
                          when j.options -> 'pty' = 'true' then 'home' else 'temporary' end as storage, coalesce(v.ask ->> 'image', m.image) as image,
                     case when v_operator or j.uid = v_uid then v.ask ->> 'build' end as build,
                     case when y.state = 'running' and (v_operator or j.uid = v_uid)
                          then format('http://127.0.0.1:8888/lab?token=%s', k.jupyter_token) end as jupyter_url,
                     y.state as jupyter, case when _may_enter(p_actor, j.uid, v) then y.error end as jupyter_error,
                     -- A forwarded agent could be used by everyone who may enter.
                     case when c.way = 'ssh' then format(case when v.secondary_users = '{}' then 'ssh -A odc-%s' else 'ssh odc-%s' end, j.id) end as ssh_command, c.way as connect,
                     case when c.way = 'ssh' then coalesce(
                         (select array_agg(concat(case when a.address like '%:%' then format('[%s]', a.address) else a.address end, ':', o.port) order by a.n)
                            from box_port as o, unnest(o.addresses) with ordinality as a (address, n)
                           where o.job_id = j.id and o.attempt = r.attempt), '{}') else '{}' end as ssh_addresses,
                     case when k.job_id is null then '{}' else array[k.host_public] end as host_keys,
                     v.ask ->> 'github_user' as github_user, v.secondary_users,
                     case when w.status = 'failed' then coalesce(j.end_detail, r.exit_detail, j.reason, w.state::text) end as failure_reason,
                     (select coalesce(json_agg(json_build_object('minutes', n.minutes, 'at', _iso(n.sent_at)) order by n.sent_at), '[]')
                        from reservation_warning as n where n.job_id = j.id and n.sent_at is not null) as warnings,
                     z.text as node_notice, _iso(z.until_at) as node_notice_until,
                     i.idle_s, o.oom_count, _iso(o.last_oom_at) as last_oom_at, coalesce(v.ask -> 'labels', '{}') as labels, j.comment,
                     h.phases,
                     case when p_history then _reservation_history(j.id) end as history
                from job as j
                join reservation as v on v.job_id = j.id
                left join pending as p on p.job_id = j.id
                left join running as r on r.job_id = j.id
                left join pending_job as b on b.id = j.id and p.job_id is not null
                left join shape as s on s.id = coalesce(p.shape_id, r.shape_id, j.shape_id)
                left join account as a on a.id = j.account_id
                left join qos as q on q.id = j.qos_id
                left join box_key as k on k.job_id = j.id
                left join build as m on m.id = v.build_id
                left join partition as pt on pt.id = coalesce(r.partition_id, j.partition_id, s.partition_ids[1])
               cross join lateral (
                     select coalesce(case when r.job_id is not null and r.intent is not null then 'COMPLETING'::job_state else r.state end,
                                     j.state, 'PENDING') as state,
                            _reservation_status(coalesce(r.state, j.state, 'PENDING'), _seen_intent(r.job_id, r.intent),
                                                coalesce(v_pass_at >= p.queued_at or p.lacks is not null, false)) as status) as w
               cross join lateral (
                     select case when r.job_id is not null
                                 then array(select n.name from allocation as l join node as n on n.id = l.node_id
                                             where l.job_id = j.id order by l.rank)
                                 else j.node_names end as names) as g
               cross join lateral (
                     select count(*) filter (where e.oom)::integer as oom_count, max(e.ended_at) filter (where e.oom) as last_oom_at
                       from box_restart as e where e.job_id = j.id) as o
                left join lateral (
                     select * from _start_progress(j.id, r.attempt, r.node_count) where r.intent is null and v.launched_at is null) as t on true
               cross join lateral _reservation_phases(j, v, r, m) as h
               cross join lateral (select case when p.lacks = 'image' then _build_text(m.state, m.step) end as text) as u
               cross join lateral (
                     select case when p.job_id is not null then case when u.text is not null then 'image_build' end when r.job_id is null then null
                                 when r.intent is not null then 'cleaning_up'
                                 when v.launched_at is null then coalesce(t.phase, 'starting') end as phase,
                            case when r.intent is not null then r.intent_at
                                 when u.text is not null then coalesce(m.started_at, j.submitted_at)
                                 when r.job_id is not null and v.launched_at is null then coalesce(t.at, r.started_at) end as phase_at,
                            t.message as told,
                            case when w.status = 'queued' and p.lacks is not null
                                 then (select l.text from _why_lacking(j.id, p.lacks) as l limit 1) end as lacking) as f
               cross join lateral (
                     select case when w.status <> 'active' or v.ask -> 'preserve_entrypoint' = 'true' then null
                                 when v.ask ? 'ssh_keys' or k.job_id is not null then case when _may_enter(p_actor, j.uid, v) then 'ssh' end
                                 when j.options -> 'pty' = 'true' and (v_operator or j.uid = v_uid) then 'terminal' end as way) as c
                left join lateral (
                     select extract(epoch from p_now - l.idle_since)::integer as idle_s from box_look as l
                      where l.job_id = j.id and l.attempt = r.attempt and l.good_until > p_now and w.status = 'active') as i on true
                left join lateral _jupyter_state(v, r.attempt) as y on w.status = 'active'
                left join _node_notices(p_now) as z on z.job_id = j.id
               where j.id = any (p_ids)) as x);
end;
$$;
