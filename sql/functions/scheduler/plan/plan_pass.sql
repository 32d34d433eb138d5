-- odc.plan_pass: one scheduling pass: decide, apply, end victims of preemption, and store the planned starts and the
-- refusals.
-- Runs READ COMMITTED. decide works on one snapshot, without locks. Then the pass takes the turn and checks what the plan
-- relies on. If a fact or a node changed meanwhile, it decides once more under the turn, where neither can change. Starts
-- of jobs that changed are left out, and another pass follows. See docs/decisions/0027.
-- Returns    one row: the jobs that start; how many were considered; whether another pass should follow at once, because
--            the start limit cut the plan short, a job was left out or victims end; next_at: when time alone may let a job
--            start, null: never; replanned: it decided twice
-- Locks      term for key share; the turn, from after decide on; facts for share; as apply_plan
-- Raises     OD020 LeadershipLost
create or replace function odc.plan_pass(
    p_term bigint, p_now timestamptz, p_start_limit integer default 2000,
    out started bigint[], out looked integer, out more boolean, out next_at timestamptz, out decide_ms real, out took_ms real,
    out replanned boolean)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_begin   timestamptz := clock_timestamp();
    v_now     timestamptz := p_now;
    v_dropped bigint[];
    v_pass    bigint;
    d         record;           -- the plan, and the state it was made from
begin
    perform _hold_term(p_term);
    replanned := false;
    loop
        -- One statement, so one snapshot.
        select p.*, f.version as facts, pg_current_snapshot() as snapshot, _policy_version() as policy,
               (select max(e.id) from event as e) as last_event_id,
               _facts_of_jobs(p.start_jobs) as start_facts, _facts_of_jobs(p.victim_for) as victim_facts
          into strict d
          from facts as f, decide(v_now, null, p_start_limit, p_digest => true) as p;
        perform _take_turn(v_now);
        exit when replanned or not _plan_moved(d.facts, d.alloc_nodes, d.alloc_masks, d.alloc_gpus, d.alloc_cpus, d.alloc_mems);
        replanned := true;
        -- The daemon's clock has advanced by the same amount.
        v_now := p_now + (clock_timestamp() - v_begin);
        perform _set_now(v_now);
    end loop;
    decide_ms := extract(epoch from clock_timestamp() - v_begin) * 1000;
    looked := d.looked;
    started := '{}';
    if d.start_jobs is not null then
        select coalesce(array_agg(s), '{}') into started
          from apply_plan(p_term, v_now, d.start_jobs, d.start_facts, d.start_partitions, d.start_nodes, d.alloc_nodes,
                          d.alloc_masks, d.alloc_gpus, d.alloc_cpus, d.alloc_mems) as s;
    end if;
    v_dropped := _dropped_jobs(d.start_jobs, started, d.head_jobs);

    perform _tell_slips(v_now, d.head_jobs, d.head_ats, started);
    -- Drop claims that are no longer needed, but only after a pass that considered all jobs.
    more := d.more or not d.more and _drop_claims(v_now) or v_dropped is not null;
    if d.victim_jobs is not null then
        v_dropped := nullif(coalesce(v_dropped, '{}') || _preempt_jobs(
            v_now, d.victim_jobs, d.victim_for, d.victim_facts, d.victim_costs, d.head_jobs, d.head_ats, d.head_nodes), '{}');
        more := true;
    end if;

    next_at := _next_chance(v_now);

    v_pass := _keep_pass(p_term, v_now, d, cardinality(started), p_start_limit, v_dropped);
    perform _keep_plan(v_pass, d.head_jobs, d.head_ats, d.head_nodes, d.head_fittings, d.head_shapes,
                       d.refused_shapes, d.refused_reasons, d.refused_heads,
                       d.limited_shapes, d.limited_limits_s, d.limited_uids, d.limited_accounts, d.limited_qos,
                       d.limited_reasons, d.head_limits);
    took_ms := extract(epoch from clock_timestamp() - v_begin) * 1000;
    update pass set took_ms = plan_pass.took_ms where id = v_pass;
end;
$$;
