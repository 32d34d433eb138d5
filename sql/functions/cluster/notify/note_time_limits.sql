-- odc.note_time_limits: put notifications into the outbox for running jobs that passed 50, 80 or 90 percent of their time
-- limit since the last call. An array that is reported as a whole has one of each. A limit that was shortened since the last
-- call may have passed a share before that call; running_past has the limit as it was then.
-- Locks      term for share, turn; as _fill_outbox; notify_state
-- Raises     OD020 LeadershipLost
create or replace function odc.note_time_limits(p_term bigint, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_kinds constant text[] := '{time_limit_50,time_limit_80,time_limit_90}';
    v_since timestamptz;
    v_rows  jsonb;
begin
    perform _hold_term(p_term);
    if not exists (select from job_mail where kinds && v_kinds) and not exists (select from webhook where kinds && v_kinds) then
        return;
    end if;
    perform _take_turn(p_now);
    select coalesce(s.checked_at, '-infinity') into v_since from notify_state as s;
    with asked as (
        select j.id, j.uid, j.user_name, w.channel, w.address, w.since, k.kind,
               r.ends_at - make_interval(secs => r.time_limit_s * (100 - k.percent) / 100.0) as at,
               b.ends_at - make_interval(secs => b.time_limit_s * (100 - k.percent) / 100.0) as at_before,
               case when j.array_job_id is not null and not 'array_tasks' = any (w.kinds) then j.array_job_id end as whole
          from running as r
          join job as j on j.id = r.job_id
         cross join lateral (
               select o.ends_at, o.time_limit_s
                 from (select p.past_id, p.ends_at, p.time_limit_s
                         from running_past as p where p.job_id = r.job_id and p.attempt = r.attempt and p.past_at > v_since
                        union all
                       select null, r.ends_at, r.time_limit_s) as o
                order by o.past_id limit 1) as b
         cross join lateral (
               select 'mail' as channel, m.address, m.kinds, '-infinity'::timestamptz as since
                 from job_mail as m where m.job_id = coalesce(j.array_job_id, j.id)
                union all
               select 'webhook', null, h.kinds, h.set_at from webhook as h where h.uid = j.uid) as w
         cross join (values ('time_limit_50', 50), ('time_limit_80', 80), ('time_limit_90', 90)) as k (kind, percent)
         where k.kind = any (w.kinds) and r.intent is null and r.ends_at < 'infinity'
    ), due as (
        select distinct on (d.channel, d.address, d.kind, coalesce(d.whole, d.id)) d.*
          from asked as d
         where d.at_before > v_since and d.at <= p_now and greatest(d.at, v_since) >= d.since
           and (d.whole is null
                or not exists (select from outbox as o where o.job_id = d.whole and o.kind = d.kind and o.channel = d.channel))
         order by d.channel, d.address, d.kind, coalesce(d.whole, d.id), d.at
    )
    select jsonb_agg(jsonb_build_object(
               'uid', d.uid, 'user', d.user_name, 'channel', d.channel, 'address', d.address, 'kind', d.kind,
               'job_id', coalesce(d.whole, d.id), 'facts', _job_notification(d.id, p_now)) order by d.at, d.id)
      into v_rows
      from due as d;
    perform _fill_outbox(v_rows, p_now);
    update notify_state set checked_at = p_now;
end;
$$;
