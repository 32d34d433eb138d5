-- odc._walk_queue: one walk over the queue. A job takes nodes that fit now. A job that does not fit becomes protected while
-- fewer than plan_depth protected jobs claim any of its groups: it gets a planned start and is pinned to nodes; its QOS may
-- let it end other jobs. In later passes, such a job claims their nodes and comes before all others.
-- Once a job is refused, no longer job of its shape can start, so a walk tries few jobs. A job over a limit is skipped with
-- its class and never protected. Only this function changes the plan's arrays; it calls in-place functions for that.
-- Arguments  p_skip  jobs that are not in the queue;  p_backfill  the second walk;  p_max_level  see _free_lists
--            p_classes, p_shapes  what _plan_classes and _load_pass returned. Arrays that the inner loops read are arguments of
--            their own, because an array is passed on by reference and a field of a record is copied
--            p_node_ids … p_group_domains  from _plan_nodes;  p_alt_spreads … p_consumes  from _load_pass
--            p_job_ids … p_lasts  from _plan_slice;  the others  the state so far; ../README.md describes its arrays
-- Returns    the new state
create or replace function odc._walk_queue(
    p_now timestamptz, p_what_if jsonb, p_start_limit integer, p_chunk integer, p_without bigint[], p_skip bigint[], p_digest boolean,
    p_backfill boolean, p_max_level integer, p_classes record, p_shapes record, p_node_ids integer[], p_node_groups integer[],
    p_blocks integer[], p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[], p_group_domains integer[],
    p_alt_spreads boolean[], p_alt_words bigint[], p_alt_partitions integer[], p_alt_groups integer[], p_group_from integer[],
    p_group_to integer[], p_class_shapes integer[], p_limits_s integer[], p_buckets integer[], p_needs bigint[], p_mores bigint[],
    p_consumes boolean[], p_job_ids bigint[], p_job_classes integer[], p_ats timestamptz[], p_counts integer[], p_leads bigint[],
    p_scores float8[], p_lasts boolean[], inout p_free bigint[], inout p_points bigint[], inout p_heads bigint[], inout p_allocs bigint[],
    inout p_claims bigint[], inout p_lefts bigint[], inout p_reported bigint[], inout p_victims bigint[], inout p_dead integer[],
    inout p_nowhere bigint[], inout p_checked integer[], inout p_full boolean[], inout p_behind bigint[], inout p_refused text[],
    inout p_reasons text[], inout p_later boolean[], inout p_preempts boolean[], inout p_reads integer[], inout p_after_ats timestamptz[],
    inout p_after_ids bigint[], inout p_looked integer, inout p_started integer, inout p_tries integer, inout p_queue_digest bigint,
    inout p_release_digest bigint, inout p_release_ats bigint[], inout p_release_nodes integer[], inout p_release_gpus integer[],
    inout p_release_cpus integer[], inout p_release_mems integer[], inout p_release_to bigint, inout p_first_ends integer)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_unlimited constant integer := 2147483647;  v_forever constant bigint := 4000000000000000000;  v_max_tries constant integer := 32;
    v_limited constant boolean := p_shapes.use_from is not null;  v_all constant boolean := 0 = any (p_shapes.gpus);
    v_sliced constant integer := cardinality(p_job_ids);  v_queue integer[] := array[0, v_sliced];  v_row integer := 0;  v_rows record;
    -- The job at hand, its class and shape.
    v_class integer;  v_shape integer := 0;  v_limit_s integer;  v_limit bigint;  v_tasks integer;  v_least integer;  v_most integer;
    v_gpus integer;  v_cpus integer;  v_mem integer;  v_exclusive boolean;  v_booking integer;  v_wish integer;  v_lapse bigint;
    v_allow boolean[];  v_from integer;  v_to integer;  v_use_from integer;  v_use_to integer;  v_slot integer;  v_found record;
    v_start record;  v_at bigint;  v_short integer[];  v_group integer;  v_first integer;  v_may_end boolean;  v_protect boolean;
begin
    loop
        if p_lasts[v_row] and _is_open(p_reasons[v_class], p_later[v_class], p_backfill, v_limit_s, p_dead[v_shape], p_full[v_shape],
                                       p_preempts[v_class]) then
            -- Read more rows of this class: a run of rows beside the slice.
            v_rows := _plan_more(
                p_now, p_backfill, coalesce(p_chunk, p_reads[v_class]), p_skip, p_ats[v_row], p_job_ids[v_row],
                p_classes.shape_ids[v_class], v_limit_s, p_classes.uids[v_class], p_classes.accounts[v_class], p_classes.qos_ids[v_class],
                p_classes.nices[v_class], p_classes.tiers[v_class], p_classes.orderings[v_class], p_classes.depths[v_class],
                p_classes.max_waits_s[v_class], p_classes.backfills[v_class], p_classes.sizes[v_class], p_classes.fairs[v_class],
                p_classes.statics[v_class], p_classes.age_weight, p_classes.max_age_s);
            p_queue_digest := case when p_digest then hash_record_extended(v_rows, p_queue_digest) end;
            if v_rows.job_ids is not null then
                p_reads[v_class] := 32;  v_first := cardinality(p_job_ids) + 1;
                p_job_ids := p_job_ids || v_rows.job_ids;  p_ats := p_ats || v_rows.queued_ats;  p_counts := p_counts || v_rows.counts;
                p_leads := p_leads || v_rows.leads;  p_scores := p_scores || v_rows.scores;
                p_job_classes := p_job_classes || array_fill(v_class, array[cardinality(v_rows.job_ids)]);
                p_lasts[cardinality(p_job_ids)] := true;
                v_queue := v_queue[:2] || _queue_run(v_queue[3:], v_first, cardinality(p_job_ids), p_leads, p_scores, p_ats, p_job_ids);
            end if;
        end if;
        v_queue := _next_candidate(v_queue, v_sliced, p_leads, p_scores, p_ats, p_job_ids, p_job_classes, p_backfill, p_class_shapes,
                                   p_limits_s, p_reasons, p_later, p_dead, p_full, p_preempts);
        v_row := v_queue[1];
        exit when v_row is null;
        v_class := p_job_classes[v_row];  v_limit_s := p_limits_s[v_class];
        if v_shape <> p_class_shapes[v_class] then
            v_shape := p_class_shapes[v_class];  v_from := p_shapes.alt_from[v_shape];  v_to := p_shapes.alt_to[v_shape];
            v_least := p_shapes.leasts[v_shape];  v_gpus := p_shapes.gpus[v_shape];  v_cpus := p_shapes.cpus[v_shape];
            v_mem := p_shapes.mems[v_shape];  v_exclusive := p_shapes.exclusives[v_shape];  v_booking := p_shapes.bookings[v_shape];
            v_allow := case when p_shapes.listed[v_shape] then _allow_nodes(
                p_node_ids, p_shapes.shape_ids[v_shape], p_what_if, p_classes.claim_nodes[-1000000 - p_shapes.shape_ids[v_shape]]) end;
        end if;
        -- Has any of its groups reached its maximum number of claims since the last check?
        if not p_full[v_shape] and p_checked[v_shape] < cardinality(p_heads) then
            p_checked[v_shape] := cardinality(p_heads);
            v_group := _full_group(p_alt_groups, p_group_from[v_from], p_group_to[v_to], p_claims, p_shapes.depths[v_shape]);
            p_full[v_shape] := v_group is not null;
            p_behind[v_shape] := coalesce(p_behind[v_shape], nullif(p_claims[2 * v_group], 0));
        end if;
        p_later[v_class] := p_backfill or (p_full[v_shape] and p_shapes.defers[v_class]);
        continue when p_later[v_class] and not p_backfill;
        p_after_ats[v_class] := p_ats[v_row];  p_after_ids[v_class] := p_job_ids[v_row];
        if v_limited then
            v_use_from := p_shapes.use_from[v_class];  v_use_to := p_shapes.use_to[v_class];
            v_short := _limits_left(p_lefts, p_buckets, p_needs, v_use_from, v_use_to);
            p_reasons[v_class] := p_shapes.limit_reasons[v_short[1]];
            continue when v_short <> '{}';
        end if;
        p_looked := p_looked + 1;
        v_limit := case when v_limit_s = v_unlimited then v_forever else v_limit_s::bigint * 1000000 end;
        v_lapse := case when p_shapes.switches[v_shape] is not null
                        then (p_shapes.waits_s[v_shape] + extract(epoch from p_ats[v_row] - p_now)) * 1000000 end;
        v_wish := case when v_lapse <= 0 then null else p_shapes.switches[v_shape] end;
        v_slot := case when v_wish is null then v_shape else v_shape + cardinality(p_checked) end;

        -- Place: an array starts as many tasks as fit.
        v_tasks := p_counts[v_row];
        while v_tasks > 0 and v_limit_s <= p_dead[v_shape] and v_limit_s <= p_dead[v_slot] loop
            v_most := p_shapes.mosts[v_shape];
            if v_most > v_least and v_limited then
                v_most := _most_nodes(v_least, v_most, p_lefts, p_buckets, p_needs, p_mores, v_use_from, v_use_to);
            end if;
            if v_most = 1 then
                v_found := _find_nodes(
                    p_free, p_points, p_heads, p_node_groups, v_allow, p_group_gpus, p_group_cpus, p_group_mems, p_group_domains,
                    p_max_level, v_from, v_to, p_alt_spreads, p_alt_words, v_gpus, v_cpus, v_mem, v_exclusive, v_limit, v_booking,
                    null, 1, null);
            else
                v_found := _place_gang(
                    p_free, p_points, p_heads, p_node_groups, v_allow, p_blocks, p_group_gpus, p_group_cpus, p_group_mems, p_group_domains,
                    p_max_level, v_from, v_to, p_alt_spreads, p_alt_words, p_alt_partitions, p_group_from, p_group_to, p_alt_groups,
                    v_gpus, v_cpus, v_mem, v_exclusive, v_limit, v_booking, v_least, v_most, v_wish);
            end if;
            if v_found.heads is not null then
                p_heads := v_found.heads;
            end if;
            if v_found.points is not null then
                p_points := v_found.points;
                p_allocs := _plan_allocations(p_allocs, p_points, p_heads, 1, p_node_groups, p_group_gpus, p_group_cpus, p_group_mems);
            end if;
            if v_found.picks[1] is null then
                -- If only a point was in the way, shorter jobs of the shape may still start.
                p_dead[v_slot] := least(v_limit_s - 1, v_found.blocked_at / 1000000);
                exit;
            end if;
            v_first := cardinality(p_allocs);
            p_allocs := _allocate_nodes(p_allocs, p_free, cardinality(p_node_ids), v_found.picks, v_gpus, v_cpus, v_mem, v_exclusive,
                                        p_job_ids[v_row], p_alt_partitions[v_found.alternative], v_limit_s);
            p_free := _take_nodes(p_free, p_allocs, v_first, p_node_groups, p_group_gpus, p_group_cpus, v_all);
            if cardinality(p_points) > cardinality(p_node_ids) then
                p_points := _take_at_points(p_points, p_allocs, v_first, v_limit);
            end if;
            v_tasks := v_tasks - 1;  p_started := p_started + 1;
            exit when p_started >= p_start_limit;
            if v_limited then
                p_lefts := _use_limits(p_lefts, p_consumes, p_buckets, p_needs, p_mores, v_use_from, v_use_to,
                                       cardinality(v_found.picks) - v_least);
                v_short := _limits_left(p_lefts, p_buckets, p_needs, v_use_from, v_use_to);
                p_reasons[v_class] := p_shapes.limit_reasons[v_short[cardinality(v_short)]];
            end if;
            exit when p_reasons[v_class] is not null;
        end loop;
        exit when p_started >= p_start_limit and p_started > 0;
        continue when v_tasks = 0 or p_reasons[v_class] is not null;

        -- Protect it, or let it end other jobs.
        v_may_end := p_preempts[v_class] and p_tries < v_max_tries;
        v_protect := not p_full[v_shape] and p_shapes.depths[v_shape] > 0;  v_at := null;
        if v_may_end or (v_protect and v_limit < p_nowhere[v_shape]) then
            v_start := _protect_job(
                p_now, p_job_ids[v_row], v_may_end, p_preempts[v_class], p_classes.qos_ids[v_class], p_without, p_digest, p_node_ids,
                v_from, v_to, p_group_from, p_group_to, p_alt_groups, p_blocks, v_wish, v_lapse, p_node_groups, p_free, p_max_level,
                p_group_gpus, p_group_cpus, p_group_mems, p_group_domains, v_least, v_gpus, v_cpus, v_mem, v_exclusive, v_limit, v_allow,
                v_booking, p_release_ats, p_release_nodes, p_release_gpus, p_release_cpus, p_release_mems, p_release_to, p_first_ends,
                p_release_digest, p_allocs, p_points, p_heads, p_victims,
                (extract(epoch from p_classes.claim_ats[-1000000 - p_shapes.shape_ids[v_shape]] - p_now) * 1000000)::bigint);
            v_at := v_start.at;
            if v_start.release_ats is not null then
                p_release_ats := v_start.release_ats;  p_release_nodes := v_start.release_nodes;  p_release_gpus := v_start.release_gpus;
                p_release_cpus := v_start.release_cpus;  p_release_mems := v_start.release_mems;  p_release_to := v_start.release_to;
                p_first_ends := v_start.first_ends;  p_release_digest := v_start.release_digest;
            end if;
            if v_may_end then
                p_tries := p_tries + 1;  p_preempts[v_class] := v_start.victims is not null;
                v_protect := v_protect or v_start.victims is not null;
                p_points := _free_victims(p_now, p_points, p_node_ids, v_start.victims);  p_victims := p_victims || v_start.victims;
            end if;
        else
            v_protect := false;
        end if;
        p_refused[v_shape] := coalesce(p_refused[v_shape], case
            when not v_protect and p_full[v_shape] and p_behind[v_shape] is not null then 'Priority'
            when v_protect and v_at is null and v_wish is null then 'ReqNodeNotAvail' else 'Resources' end);
        continue when not v_protect;
        p_reported := p_reported || array[p_job_ids[v_row], case when v_at is null then 0 else cardinality(p_heads) / 10 + 1 end,
                                          v_start.fitting, p_classes.kept_shape_ids[v_class]];
        if v_at is null then
            -- Its nodes are down, or allocated without an end in sight: it blocks no other job.
            p_nowhere[v_shape] := v_limit;
            continue;
        end if;
        v_first := cardinality(p_points) + 1;
        p_points := _pin_nodes(p_points, cardinality(p_heads) / 10 + 1, v_at, v_at + v_limit, v_start.fit, v_start.then_gpus,
                               v_start.then_cpus, v_start.then_mems, v_least, case when v_exclusive then -1 else v_gpus end, v_cpus, v_mem,
                               p_node_groups, p_group_gpus, p_group_cpus, p_group_mems);
        p_heads := p_heads || array[case when v_exclusive then -1 else v_gpus end, v_cpus, v_mem, v_first, cardinality(p_points) + 1,
                                    v_first, v_at, v_at + v_limit, cardinality(p_allocs) + 1, v_least];
        p_allocs := _plan_allocations(p_allocs, p_points, p_heads, cardinality(p_heads) / 10, p_node_groups, p_group_gpus, p_group_cpus,
                                      p_group_mems);
        if v_start.victims is null and p_shapes.shape_ids[v_shape] > -1000000 then
            p_claims := _claim_groups(p_claims, p_alt_groups, p_group_from[v_from], p_group_to[v_to], p_job_ids[v_row]);
        elsif v_limited then
            -- Jobs that start in the meantime must not use up the limits it needs.
            p_lefts := _use_limits(p_lefts, p_consumes, p_buckets, p_needs, p_mores, v_use_from, v_use_to, 0);
        end if;
    end loop;
end;
$$;
