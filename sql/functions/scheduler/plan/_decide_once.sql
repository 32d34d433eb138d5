-- odc._decide_once: one plan: load, order, place, protect, preempt, report. ../README.md explains it with an example.
-- Arguments  as decide, and  p_promised  jobs that keep their planned starts: each claims the nodes on which it was planned
create or replace function odc._decide_once(
    p_now timestamptz, p_what_if jsonb, p_start_limit integer, p_chunk integer, p_depth integer, p_without bigint[],
    p_digest boolean, p_promised bigint[], p_only bigint[])
returns odc.decision
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_class class_lists;  v_node record;  v_load shape_lists;  v_slice record;  -- the arrays of _plan_classes … _plan_slice
    v_state record;             -- what the plan has changed so far: the results of _walk_queue
    v_plan decision;  v_digest bytea;  v_caps integer[];  v_more boolean := false;
    v_skip bigint[];            -- these jobs are not in the queue: p_without, and those that claim nodes
    v_level integer;  v_classes integer;  v_shapes integer;  v_groups integer;
begin
    select * into v_class from _plan_classes(p_now, p_what_if, p_without, p_promised, p_only);
    if v_class.shape_ids is null then
        v_plan.looked := 0;  v_plan.classes := 0;  v_plan.more := false;
        return v_plan;
    end if;
    v_classes := cardinality(v_class.shape_ids);
    v_skip := case when v_class.claim_jobs is null then p_without else coalesce(p_without, '{}') || v_class.claim_jobs end;
    select * into v_node from _plan_nodes(p_without);
    v_digest := case when p_digest then int8send(hash_record_extended(v_class, 0)) || int8send(hash_record_extended(v_node, 0)) end;
    v_node.node_ids := coalesce(v_node.node_ids, '{}');  v_node.groups := coalesce(v_node.groups, '{}');
    v_groups := coalesce(cardinality(v_node.group_gpus), 0);
    v_class.depths := case when p_depth is null then v_class.depths else array_fill(p_depth, array[v_classes]) end;
    select * into v_load from _load_pass(
        p_now, p_what_if, p_digest, v_node.group_ids, v_node.blocks is not null, v_class.shape_ids, v_class.limits_s, v_class.uids,
        v_class.accounts, v_class.qos_ids, v_class.backfills, v_class.depths, v_class.kept_shape_ids, v_class.claim_shapes);
    v_shapes := cardinality(v_load.shape_ids);
    select greatest(coalesce(max(u), 0), 8) into v_level from unnest(v_node.group_gpus) as u;
    select _free_lists(v_node.groups, v_node.masks, v_node.gpus, v_node.cpus, v_node.mems, v_node.jobs, v_node.group_gpus,
                       v_node.group_cpus, v_level, 0 = any (v_load.gpus)) as p_free,
           _booking_points(p_now, v_node.node_ids) as p_points, '{}'::bigint[] as p_protected, '{}'::bigint[] as p_allocs,
           array_fill(0::bigint, array[2 * v_groups]) as p_claims, v_load.lefts as p_lefts, v_load.spans as p_spans,
           '{}'::bigint[] as p_gives, '{}'::integer[] as p_used, array_fill(null::bigint, array[v_classes]) as p_keepers,
           '{}'::bigint[] as p_reported,
           '{}'::bigint[] as p_victims, v_load.dead || array_fill(2147483647, array[v_shapes]) as p_dead,
           array_fill(8000000000000000000, array[v_shapes]) as p_nowhere, array_fill(-1, array[v_shapes]) as p_checked,
           v_load."full" as p_full, array_fill(null::bigint, array[v_shapes]) as p_behind, v_load.refused as p_refused,
           array_fill(null::text, array[v_classes]) as p_reasons, array_fill(false, array[v_classes]) as p_later,
           v_load.preempts as p_preempts, array_fill(8, array[v_classes]) as p_reads,
           array_fill('-infinity'::timestamptz, array[v_classes]) as p_after_ats, array_fill(0::bigint, array[v_classes]) as p_after_ids,
           0 as p_looked, 0 as p_started, 0 as p_tries, 0 as p_placed, 0 as p_asked, 0::bigint as p_queue_digest,
           row(null, null, null, null, null, null, null, 0)::release_lists as p_releases
      into v_state;

    -- Order: first that of the queue, then the policies' backfill order, for classes that were deferred to it.
    for walk in 1..2 loop
        exit when v_more or (walk = 2 and not true = any (v_state.p_later));
        v_caps := _class_caps(
            v_state.p_free, cardinality(v_node.node_ids), v_groups, v_skip is not null, v_load.leasts, v_load.gpus, v_load.cpus,
            v_load.exclusives, v_load.alt_from, v_load.alt_to, v_load.group_from, v_load.group_to, v_load.alt_groups, v_load.depths,
            v_state.p_dead, v_state.p_full, v_load.lefts is not null, v_load.class_shapes, v_class.limits_s, walk = 2,
            v_state.p_reasons, v_state.p_later, v_state.p_preempts);
        continue when 0 = all (v_caps);
        select * into v_slice from _plan_slice(
            p_now, walk = 2, array_fill(coalesce(cardinality(p_only) + 1, p_chunk, greatest(1, least(16, 300 / v_classes)))
                                        + (v_skip is not null)::integer, array[v_classes]),
            v_skip, v_caps, v_state.p_after_ats, v_state.p_after_ids, v_class.head_ats, v_class.head_ids, v_class.head_counts,
            v_class.shape_ids, v_class.limits_s, v_class.uids, v_class.accounts, v_class.qos_ids, v_class.nices, v_class.tiers,
            v_class.orderings, v_class.depths, v_class.max_waits_s, v_class.backfills, v_class.sizes, v_class.fairs, v_class.statics,
            v_class.age_weight, v_class.max_age_s, p_only);
        v_state.p_queue_digest := case when p_digest then hash_record_extended(v_slice, v_state.p_queue_digest) end;
        continue when v_slice.job_ids is null;
        v_state := _walk_queue(
            p_now, p_what_if, p_start_limit, p_chunk, p_without, v_skip, p_digest, walk = 2, v_level, v_class, v_load, v_node.node_ids,
            v_node.groups, v_node.blocks, v_node.group_gpus, v_node.group_cpus, v_node.group_mems, v_node.group_domains,
            v_load.alt_spreads, v_load.alt_words, v_load.alt_partitions, v_load.alt_groups, v_load.group_from, v_load.group_to,
            v_load.class_shapes, v_class.limits_s, v_load.buckets, v_load.needs, v_load.mores, v_load.consumes, v_slice.job_ids,
            v_slice.classes, v_slice.queued_ats, v_slice.counts, v_slice.leads, v_slice.scores, v_slice.lasts, v_state.p_free,
            v_state.p_points, v_state.p_protected, v_state.p_allocs, v_state.p_claims, v_state.p_lefts, v_state.p_spans,
            v_state.p_gives, v_state.p_used, v_state.p_keepers, v_state.p_reported, v_state.p_victims,
            v_state.p_dead, v_state.p_nowhere, v_state.p_checked, v_state.p_full, v_state.p_behind, v_state.p_refused, v_state.p_reasons,
            v_state.p_later, v_state.p_preempts, v_state.p_reads, v_state.p_after_ats, v_state.p_after_ids, v_state.p_looked,
            v_state.p_started, v_state.p_tries, v_state.p_placed, v_state.p_asked, v_state.p_queue_digest, v_state.p_releases);
        v_more := v_state.p_started > 0 and v_state.p_started >= p_start_limit;
    end loop;
    return _report_plan(
        p_now, v_state.p_looked, v_classes, v_more,
        v_digest || v_load.digest || int8send(v_state.p_queue_digest) || int8send((v_state.p_releases).digest),
        v_state.p_allocs, v_state.p_reported, v_state.p_protected, v_state.p_points, v_state.p_victims, v_node.node_ids, v_load.shape_ids,
        v_state.p_refused, v_state.p_behind, v_class.shape_ids, v_class.limits_s, v_class.uids, v_class.accounts, v_class.qos_ids,
        v_state.p_reasons, v_state.p_keepers, v_load.limit_reasons);
end;
$$;
