-- odc._record_members: the part of record_facts that writes: allocations, then the running rows of their jobs.
-- Arguments  as record_facts
-- Locks      allocation; the caller has locked the running rows
-- In a job whose script runs on its first node only, the other members hold their nodes: the end of the script ends them,
-- and how they exit says nothing about the job. Once the script has succeeded, nothing else that happens to them does
-- either: they may be ended before they have started, and by an earlier leader. If it has failed, the loss of a node may be
-- why, but a member that could not start is not.
-- PostgreSQL may have counted running and allocation when they were empty. The settings and `any (p_job_ids)` leave no plan
-- that compares each fact with all running jobs.
create or replace function odc._record_members(
    p_job_ids bigint[], p_attempts integer[], p_ranks integer[], p_kinds text[], p_ats timestamptz[],
    p_exit_codes integer[], p_signals integer[], p_causes text[], p_details text[], p_suspects boolean[],
    p_used text[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp set enable_seqscan = off set enable_nestloop = off as $$
declare
    v_window constant interval := '5 minutes'; -- between the loss of a member and the failures of others because of it
begin
    with fact as materialized (
        select f.job_id, f.rank, f.kind, f.at, f.exit_code, f.signal, f.cause, f.detail, f.used::bigint[] as used,
               -- A member that was to end anyway is no evidence against its node.
               case when f.suspect is not true or r.intent is not null then null
                    when f.kind = 'lost' then 'lost' when f.kind = 'start_failed' then 'launch' else 'failed' end as strike,
               r.node_count > 1 and (select j.options ->> 'launch' = 'first' from job as j where j.id = r.job_id) as first_only
          from unnest(p_job_ids, p_attempts, p_ranks, p_kinds, p_ats, p_exit_codes, p_signals, p_causes, p_details, p_suspects,
                      p_used)
               as f (job_id, attempt, rank, kind, at, exit_code, signal, cause, detail, suspect, used)
          join running as r on r.job_id = f.job_id and r.attempt = f.attempt
         where r.job_id = any (p_job_ids) and f.kind <> 'doomed'
    ), script as materialized (
        -- How the script ended that runs on the first node alone: as a shell shows it. It may have ended before.
        select f.job_id,
               coalesce(min(coalesce(f.exit_code, 128 + f.signal)) filter (where f.rank = 0 and f.kind = 'exited' and f.cause is null),
                        max(coalesce(a.exit_code, 128 + a.exit_signal))) as code
          from fact as f
          left join allocation as a on a.job_id = f.job_id and a.job_id = any (p_job_ids) and a.rank = 0 and a.state = 'ended'
         where f.first_only group by f.job_id
    ), finish as (
        select distinct on (f.job_id, f.rank)
               f.job_id, f.rank, f.at, f.first_only, f.used, case when held then 'exited' else f.kind end as kind,
               case when not held then f.cause end as cause, case when not held then f.detail end as detail,
               case when not held then f.strike end as strike,
               case when not held then f.exit_code end as exit_code, case when not held then f.signal end as signal
          from fact as f
          left join script as s on s.job_id = f.job_id
         cross join lateral (
             select coalesce(f.first_only and f.rank > 0
                             and (f.kind = 'exited' or s.code = 0 or s.code is not null and f.kind = 'start_failed'), false) as held
         ) as h
         where f.kind <> 'started' order by f.job_id, f.rank, f.at, f.kind, f.cause, f.exit_code, f.signal
    ), begun as (
        select f.job_id, f.rank, min(f.at) as at from fact as f where f.kind = 'started' group by f.job_id, f.rank
    ), member as (
        update allocation as a
           set state = case when c.ended then 'ended' else 'running' end::member_state,
               exit_code = coalesce(c.exit_code, a.exit_code), exit_signal = coalesce(c.signal, a.exit_signal), strike = coalesce(a.strike, c.strike),
               used = coalesce(c.used, a.used)
          from (select coalesce(e.job_id, b.job_id) as job_id, coalesce(e.rank, b.rank) as rank,
                       e.job_id is not null as ended, e.exit_code, e.signal, e.kind, e.cause, e.detail, e.strike, e.at as ended_at, e.first_only, e.used,
                       b.at as begun_at
                  from finish as e full join begun as b on b.job_id = e.job_id and b.rank = e.rank) as c
         where a.job_id = c.job_id and a.rank = c.rank and a.job_id = any (p_job_ids)
           and (a.state = 'starting' or (a.state = 'running' and c.ended))
        returning a.job_id, c.ended, c.ended and c.first_only and a.rank = 0 as over, c.ended_at, c.begun_at, c.exit_code, c.signal, c.detail, c.cause = 'deleted' as deleted,
                  case when not c.ended then null
                       when c.kind = 'lost' then 'lost'
                       when c.kind = 'start_failed' then case when c.cause in ('launch', 'unscheduled') then c.cause else 'start_failed' end
                       when c.cause in ('timeout', 'oom') then c.cause
                       when c.exit_code <> 0 or c.signal is not null then 'failed' end as cause
    ), recorded as (
        select m.job_id, count(*) filter (where m.ended) as ended, max(m.begun_at) as begun_at,
               max(m.ended_at) as ended_at, coalesce(bool_or(m.over), false) as over,
               max(m.exit_code) as exit_code, max(m.detail) as detail,
               max(m.detail) filter (where m.cause = 'lost') as lost_detail,
               bool_or(m.cause = 'lost' and m.deleted is not true) as surely_lost,
               -- The signal of a member that failed by itself matters more than those of members ended because of it.
               case when coalesce(max(m.exit_code), 0) = 0 then max(m.signal) end as signal,
               -- The cause that decides when members ended in different ways.
               (array_agg(m.cause order by array_position(
                   array['lost', 'timeout', 'oom', 'launch', 'unscheduled', 'start_failed', 'failed'], m.cause))
                filter (where m.cause is not null))[1] as cause
          from member as m group by m.job_id
    ), judged as (
        -- by_loss: other members fail when a gang loses one of its members. That is not the job's own failure. A pod that
        -- was only deleted after the failure may have been deleted by an earlier leader, because of the failure.
        select t.*,
               coalesce(case when r.exit_cause = 'failed'
                             then t.cause = 'lost' and p_now <= r.intent_at + v_window
                                  and (t.surely_lost or r.doomed_at <= r.intent_at or _lacks_node(r.job_id))
                             when r.exit_cause is null and t.cause = 'failed' and r.node_count > 1
                             then r.doomed_at >= t.ended_at - v_window or _lacks_node(r.job_id) end, false) as by_loss
          from recorded as t
          join running as r on r.job_id = t.job_id
         where r.job_id = any (p_job_ids)
    )
    update running as r
       set live_members = r.live_members - t.ended,
           exit_code = case when t.by_loss then null when r.exit_cause is null then greatest(r.exit_code, t.exit_code)
                            else r.exit_code end,
           exit_signal = case when t.by_loss then null when r.exit_cause is null then greatest(r.exit_signal, t.signal)
                              else r.exit_signal end,
           -- The first cause decides, with two exceptions. A job that may have run must not count as never launched. And
           -- the loss of a member decides over failures that it caused.
           exit_cause = case when t.by_loss or r.exit_cause in ('launch', 'unscheduled') and t.cause = 'lost' then 'lost'
                             else coalesce(r.exit_cause, t.cause) end,
           exit_detail = case when t.by_loss then coalesce(t.lost_detail, r.doomed_detail, r.exit_detail, t.detail)
                              else coalesce(r.exit_detail, t.detail) end,
           running_at = coalesce(r.running_at, t.begun_at),
           exited_at = greatest(r.exited_at, t.ended_at),
           state = case when r.intent is not null or ((t.cause is not null or t.over) and r.live_members > t.ended) then 'COMPLETING'
                        -- A reservation becomes RUNNING when all its members are ready: see _activate_reservations.
                        when t.begun_at is not null and r.state = 'CONFIGURING'
                             and not exists (select from reservation as v where v.job_id = r.job_id) then 'RUNNING'
                        else r.state end::job_state,
           intent = case when (t.cause is not null or t.over) and r.live_members > t.ended
                         then coalesce(r.intent, 'member_failed') else r.intent end,
           intent_at = case when (t.cause is not null or t.over) and r.live_members > t.ended
                            then coalesce(r.intent_at, p_now) else r.intent_at end
      from judged as t
     where r.job_id = t.job_id and r.job_id = any (p_job_ids);
end;
$$;
