-- odc._decide_once: one plan: load, order, place, protect, preempt, report. ../README.md explains it with an example.
-- Arguments  as decide, and  p_kept  jobs that keep their planned starts: each claims the nodes on which it was planned
create or replace function odc._decide_once(
    p_now timestamptz, p_what_if jsonb, p_start_limit integer, p_chunk integer, p_depth integer, p_without bigint[],
    p_digest boolean, p_kept bigint[], p_only bigint[])
returns odc.decision
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    c record;                   -- _plan_classes
    n record;                   -- _plan_nodes
    s record;                   -- _load_pass: shapes, limits, classes
    q record;                   -- _plan_slice
    w record;                   -- _walk_queue: what the plan has changed so far
    v_plan decision;  v_digest bytea;  v_caps integer[];
    v_skip bigint[];            -- these jobs are not in the queue: p_without, and those that claim nodes
    v_level integer;  v_classes integer;  v_shapes integer;  v_groups integer;
begin
    select * into c from _plan_classes(p_now, p_what_if, p_without, p_kept, p_only);
    if c.shape_ids is null then
        v_plan.looked := 0;  v_plan.classes := 0;  v_plan.more := false;
        return v_plan;
    end if;
    v_classes := cardinality(c.shape_ids);
    v_skip := case when c.claim_jobs is null then p_without else coalesce(p_without, '{}') || c.claim_jobs end;
    select * into n from _plan_nodes(p_without);
    v_digest := case when p_digest then int8send(hash_record_extended(c, 0)) || int8send(hash_record_extended(n, 0)) end;
    n.node_ids := coalesce(n.node_ids, '{}');  n.groups := coalesce(n.groups, '{}');
    v_groups := coalesce(cardinality(n.group_gpus), 0);
    c.depths := case when p_depth is null then c.depths else array_fill(p_depth, array[v_classes]) end;
    select * into s from _load_pass(
        p_now, p_what_if, p_digest, n.group_ids, n.blocks is not null, c.shape_ids, c.limits_s, c.uids, c.accounts, c.qos_ids,
        c.backfills, c.depths, c.kept_shape_ids, c.claim_shapes);
    v_shapes := cardinality(s.shape_ids);
    select greatest(coalesce(max(u), 0), 8) into v_level from unnest(n.group_gpus) as u;
    select _free_lists(n.groups, n.masks, n.gpus, n.cpus, n.mems, n.jobs, n.group_gpus, n.group_cpus, v_level, 0 = any (s.gpus)) as free,
           _booking_points(p_now, n.node_ids) as points, '{}'::bigint[] as heads, '{}'::bigint[] as allocs, '{}'::bigint[] as reported,
           '{}'::bigint[] as victims, array_fill(0::bigint, array[2 * v_groups]) as claims, s.lefts, s.dead, s."full", s.refused,
           array_fill(2147483647, array[v_shapes]) as dead_wish, array_fill(8000000000000000000, array[v_shapes]) as nowhere,
           array_fill(-1, array[v_shapes]) as checked, array_fill(null::bigint, array[v_shapes]) as behind,
           s.preempts, array_fill(null::text, array[v_classes]) as reasons, array_fill(false, array[v_classes]) as later,
           array_fill(8, array[v_classes]) as reads, array_fill('-infinity'::timestamptz, array[v_classes]) as after_ats,
           array_fill(0::bigint, array[v_classes]) as after_ids, 0 as looked, 0 as started, 0 as tries, false as more,
           0::bigint as queue_digest, 0::bigint as release_digest, false as released, null::bigint[] as release_ats,
           null::integer[] as release_nodes, null::integer[] as release_gpus, null::integer[] as release_cpus,
           null::integer[] as release_mems, null::bigint as release_to, null::integer as first_ends
      into w;

    -- Order: first that of the queue, then the policies' backfill order, for classes that were deferred to it.
    for walk in 1..2 loop
        exit when w.more or (walk = 2 and not true = any (w.later));
        v_caps := _class_caps(
            w.free, cardinality(n.node_ids), v_groups, v_skip is not null, s.leasts, s.gpus, s.cpus, s.exclusives, s.alt_from, s.alt_to,
            s.group_from, s.group_to, s.alt_groups, s.depths, w.dead, w.full, s.class_shapes, c.limits_s, walk = 2, w.reasons, w.later, w.preempts);
        continue when 0 = all (v_caps);
        select * into q from _plan_slice(
            p_now, walk = 2, array_fill(coalesce(cardinality(p_only) + 1, p_chunk, greatest(1, least(16, 300 / v_classes)))
                                        + (v_skip is not null)::integer, array[v_classes]),
            v_skip, v_caps, w.after_ats, w.after_ids, c.head_ats, c.head_ids, c.head_counts, c.shape_ids, c.limits_s, c.uids, c.accounts,
            c.qos_ids, c.nices, c.tiers, c.orderings, c.depths, c.max_waits_s, c.backfills, c.sizes, c.fairs, c.statics, c.age_weight,
            c.max_age_s, p_only);
        w.queue_digest := case when p_digest then hash_record_extended(q, w.queue_digest) end;
        if q.job_ids is not null then
            w := _walk_queue(p_now, p_what_if, p_start_limit, p_chunk, p_without, v_skip, p_digest, walk = 2, v_level, c, n, s, q, w);
        end if;
    end loop;
    return _report_plan(
        p_now, w.looked, v_classes, w.more, v_digest || s.digest || int8send(w.queue_digest) || int8send(w.release_digest),
        w.allocs, w.reported, w.heads, w.points, w.victims, n.node_ids, s.shape_ids, w.refused, w.behind,
        c.shape_ids, c.limits_s, c.uids, c.accounts, c.qos_ids, w.reasons);
end;
$$;
