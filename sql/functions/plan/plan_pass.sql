-- odc.plan_pass: one run of the scheduler: decide, apply, end whom others preempt, and note the planned starts and the
-- refusals.
-- Runs REPEATABLE READ on the leader's own connection; the caller retries once on 40001 and on OD003.
-- Returns    one row: the jobs that start, how many were looked at, whether another pass should follow at once: the
--            start limit cut the plan short, or somebody is preempted; next_at: when one should follow though nothing
--            happens until then, null: never
-- Locks      as apply_plan
-- Raises     OD020 LeadershipLost
create or replace function odc.plan_pass(
    p_term bigint, p_now timestamptz, p_start_limit integer default 2000,
    out started bigint[], out looked integer, out more boolean, out next_at timestamptz, out decide_ms real, out took_ms real)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_begin    timestamptz := clock_timestamp();
    v_snapshot pg_snapshot;
    d          record;
    v_pass     bigint;
begin
    perform _hold_term(p_term);
    perform _set_now(p_now);
    v_snapshot := pg_current_snapshot();
    select * into d from decide(p_now, null, p_start_limit, p_digest => true);
    decide_ms := extract(epoch from clock_timestamp() - v_begin) * 1000;
    looked := d.looked;
    more := d.more;
    started := '{}';
    if d.start_jobs is not null then
        select coalesce(array_agg(s), '{}') into started
          from apply_plan(p_term, p_now, d.start_jobs, d.start_partitions, d.start_nodes, d.alloc_nodes,
                          d.alloc_masks, d.alloc_gpus, d.alloc_cpus, d.alloc_mems) as s;
    end if;

    perform _tell_slips(p_now, d.head_jobs, d.head_ats, started);
    -- A claim that came to nothing is dropped; not by a pass that did not look at all jobs.
    more := more or not more and _drop_claims(p_now);
    if d.victim_jobs is not null then
        perform _preempt_jobs(p_now, d.victim_jobs, d.victim_for, d.victim_costs, d.head_jobs, d.head_ats, d.head_nodes);
        more := true;
    end if;

    next_at := _next_chance(p_now);

    v_pass := _keep_pass(p_term, p_now, d, cardinality(started), p_start_limit, v_snapshot);
    perform _keep_plan(v_pass, d.head_jobs, d.head_ats, d.head_nodes, d.head_fittings, d.head_shapes,
                       d.refused_shapes, d.refused_reasons, d.refused_heads,
                       d.limited_shapes, d.limited_limits_s, d.limited_uids, d.limited_accounts, d.limited_qos,
                       d.limited_reasons);
    took_ms := extract(epoch from clock_timestamp() - v_begin) * 1000;
    update pass set took_ms = plan_pass.took_ms where id = v_pass;
end;
$$;
