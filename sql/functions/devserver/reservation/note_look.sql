-- odc.note_look: record how much a reservation is used now. End it if it was idle for as long as its QOS allows, and
-- its user was notified. It is idle while no user is connected, no GPU is used, and its CPUs do next to nothing, in
-- consecutive observations: time without an observation counts as use.
-- Arguments  p_sessions     connections to it
--            p_gpu_percent  use of its busiest GPU; null: it has none or cannot report it; then gpu_now is used if it
--                           has a value
--            p_cpu_s        total CPU time of all its processes
--            p_every        the interval between observations
-- Returns    the notice for its user: idle_s, and release_at, when it ends if it stays idle (null: it does not end);
--            idle_s null: it is no longer idle. No row: no notice
-- Locks      term for share; running, box_look
-- Raises     OD020 LeadershipLost
create or replace function odc.note_look(
    p_term bigint, p_job_id bigint, p_attempt integer, p_sessions integer, p_gpu_percent integer, p_cpu_s double precision,
    p_every interval, p_now timestamptz)
returns table (idle_s integer, release_at timestamptz)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_patience constant integer := 3;                       -- number of observations that may be missing
    v_busy     constant double precision := 0.2;            -- CPUs in use, above which it is busy
    v_notice   constant interval := '10 minutes';           -- minimum time between the notice and the end
    v_run      running;
    v_qos      qos;
    v_last     box_look;
    v_follows  boolean;
    v_idle     boolean;
    v_since    timestamptz;
    v_told_at  timestamptz;             -- when the user was notified of this idle period
    v_ends     timestamptz;
    v_rests    boolean;                 -- its GPUs are idle, or it has none
begin
    perform _hold_term(p_term);
    perform _set_now(p_now);
    select * into v_run from running as r
     where r.job_id = p_job_id and r.attempt = p_attempt and r.state = 'RUNNING' and r.intent is null for update;
    if not found then
        return;
    end if;
    select * into strict v_qos from qos as q where q.id = v_run.qos_id;
    select * into v_last from box_look as l where l.job_id = p_job_id for update;
    v_follows := coalesce(v_last.attempt = p_attempt and v_last.good_until > p_now and v_last.at < p_now, false);
    select s.gpus_per_node = 0 or coalesce(
               case when p_gpu_percent is not null then p_gpu_percent = 0
                    else (select count(*) = v_run.node_count * s.gpus_per_node
                            from gpu_now as g cross join jsonb_object_keys(g.idle)
                           where g.job_id = p_job_id and g.attempt = p_attempt and g.good_until > p_now) end, false)
      into v_rests from shape as s where s.id = v_run.shape_id;
    v_idle := v_follows and p_sessions = 0 and coalesce(v_rests, false) and p_cpu_s >= v_last.cpu_s
              and p_cpu_s - v_last.cpu_s <= v_busy * extract(epoch from p_now - v_last.at);
    -- A user who was connected at the last observation, and is not now, disconnected at some time in between.
    v_since := case when v_idle then coalesce(v_last.idle_since, p_now) end;
    insert into box_look as l (job_id, attempt, at, good_until, cpu_s, idle_since)
    values (p_job_id, p_attempt, p_now, p_now + v_patience * p_every, p_cpu_s, v_since)
        on conflict (job_id) do update
       set attempt = excluded.attempt, at = excluded.at, good_until = excluded.good_until, cpu_s = excluded.cpu_s, idle_since = excluded.idle_since;
    if not v_idle then
        if v_last.told_at is not null then
            return query select null::integer, null::timestamptz;
        end if;
        return;
    end if;
    v_told_at := case when v_last.told_at >= v_since then v_last.told_at end;
    v_ends := case when v_qos.idle_release_s > 0
                   then greatest(v_since + make_interval(secs => v_qos.idle_release_s), coalesce(v_told_at, p_now) + v_notice) end;
    if v_told_at is not null and v_ends <= p_now then
        update running as r
           set intent = 'cancel', intent_by = 'odcd', intent_at = p_now, state = 'COMPLETING',
               exit_detail = format('it was idle for %s, and QOS %s ends idle reservations', _duration(extract(epoch from p_now - v_since)::integer), v_qos.name)
         where r.job_id = p_job_id;
        insert into event (at, kind, actor, job_id, detail)
        values (p_now, 'idle_released', 'odcd', p_job_id, jsonb_build_object('idle_since', _iso(v_since), 'qos', v_qos.name));
        perform _wake();
    elsif v_told_at is null and v_qos.idle_warn_s > 0 and v_since + make_interval(secs => v_qos.idle_warn_s) <= p_now then
        return query select extract(epoch from p_now - v_since)::integer, v_ends;
    end if;
end;
$$;
