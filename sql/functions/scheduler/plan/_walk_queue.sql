-- odc._walk_queue: one walk over the queue. A job takes nodes that fit now. A job that does not fit becomes protected while
-- fewer than plan_depth protected jobs claim any of its groups: it gets a planned start and is pinned to nodes; its QOS may
-- let it end other jobs. In later passes, such a job claims their nodes and comes before all others.
-- Once a job is refused, no longer job of its shape can start, so a walk tries few jobs. A job over a limit is skipped with
-- its class and never protected. Only this function changes the plan's arrays; it calls in-place functions for that.
-- Arguments  p_skip  jobs that are not in the queue;  p_backfill  the second walk;  p_max_level  see _free_lists
--            c, n, s, q  what _plan_classes, _plan_nodes, _load_pass and _plan_slice returned
--            w       the state so far; ../README.md lists its arrays
-- Returns    the new state
create or replace function odc._walk_queue(
    p_now timestamptz, p_what_if jsonb, p_start_limit integer, p_chunk integer, p_without bigint[], p_skip bigint[],
    p_digest boolean, p_backfill boolean, p_max_level integer, c record, n record, s record, q record, w record)
returns record
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_unlimited constant integer := 2147483647;  v_far constant bigint := 8000000000000000000;
    v_max_preempt constant integer := 32;  v_few constant integer := 4;  v_soon constant integer := 300;
    -- Arrays that functions of the inner loops read are variables, which are passed by reference.
    v_node_ids constant integer[] := n.node_ids;  v_nodes constant integer := cardinality(v_node_ids);
    v_node_groups constant integer[] := n.groups;  v_blocks constant integer[] := n.blocks;
    v_group_gpus constant integer[] := n.group_gpus;  v_group_cpus constant integer[] := n.group_cpus;
    v_group_mems constant integer[] := n.group_mems;  v_domains constant integer[] := n.group_domains;
    v_alt_spreads constant boolean[] := s.alt_spreads;  v_alt_words constant bigint[] := s.alt_words;
    v_alt_groups constant integer[] := s.alt_groups;  v_group_from constant integer[] := s.group_from;
    v_group_to constant integer[] := s.group_to;  v_alt_partitions constant integer[] := s.alt_partitions;
    v_shapes constant integer[] := s.class_shapes;  v_limits_s constant integer[] := c.limits_s;
    v_buckets constant integer[] := s.buckets;  v_needs constant bigint[] := s.needs;  v_mores constant bigint[] := s.mores;
    v_all constant boolean := 0 = any (s.gpus);
    v_consumes constant boolean[] := s.consumes;  v_limited constant boolean := s.use_from is not null;  v_left bigint[] := w.lefts;  v_short integer[];
    v_free bigint[] := w.free;  v_points bigint[] := w.points;  v_heads bigint[] := w.heads;  v_allocs bigint[] := w.allocs;
    v_claims bigint[] := w.claims;  v_dead integer[] := w.dead;  v_full boolean[] := w.full;
    v_reasons text[] := w.reasons;  v_later boolean[] := w.later;  v_preempts boolean[] := w.preempts;
    v_job_ids bigint[] := q.job_ids;  v_classes integer[] := q.classes;  v_counts integer[] := q.counts;
    v_ats timestamptz[] := q.queued_ats;  v_leads bigint[] := q.leads;  v_scores float8[] := q.scores;  v_lasts boolean[] := q.lasts;
    v_after_ats timestamptz[] := w.after_ats;  v_after_ids bigint[] := w.after_ids;
    v_sliced constant integer := cardinality(v_job_ids);  v_queue integer[] := array[0, v_sliced];  v_row integer := 0;
    -- The job at hand, its class and shape.
    v_class integer;  v_shape integer := 0;  v_limit_s integer;  v_limit bigint;  v_tasks integer;  v_least integer;  v_most integer;
    v_gpus integer;  v_cpus integer;  v_mem integer;  v_exclusive boolean;
    v_wish integer;  v_lapse bigint;  v_allow boolean[];  v_from integer;  v_to integer;
    v_found record;  v_start record;  v_group integer;  v_first integer;  v_head integer;  v_may_end boolean;  v_reason text;
    v_looked integer := w.looked;  v_started integer := w.started;
begin
    loop
        if v_lasts[v_row] and _is_open(v_reasons[v_class], v_later[v_class], p_backfill, v_limit_s, v_dead[v_shape], v_full[v_shape], v_preempts[v_class]) then
            -- Read more rows of this class: a run of rows beside the slice.
            select * into q from _plan_more(
                p_now, p_backfill, coalesce(p_chunk, w.reads[v_class]), p_skip, v_ats[v_row], v_job_ids[v_row], c.shape_ids[v_class],
                v_limit_s, c.uids[v_class], c.accounts[v_class], c.qos_ids[v_class], c.nices[v_class], c.tiers[v_class],
                c.orderings[v_class], c.depths[v_class], c.max_waits_s[v_class], c.backfills[v_class], c.sizes[v_class], c.fairs[v_class],
                c.statics[v_class], c.age_weight, c.max_age_s);
            w.queue_digest := case when p_digest then hash_record_extended(q, w.queue_digest) end;
            if q.job_ids is not null then
                w.reads[v_class] := 32;
                v_first := cardinality(v_job_ids);
                for i in 1..cardinality(q.job_ids) loop
                    v_job_ids[v_first + i] := q.job_ids[i];  v_counts[v_first + i] := q.counts[i];  v_ats[v_first + i] := q.queued_ats[i];
                    v_leads[v_first + i] := q.leads[i];  v_scores[v_first + i] := q.scores[i];  v_classes[v_first + i] := v_class;
                end loop;
                v_lasts[cardinality(v_job_ids)] := true;
                v_queue := v_queue[:2] || _queue_run(v_queue[3:], v_first + 1, cardinality(v_job_ids), v_leads, v_scores, v_ats, v_job_ids);
            end if;
        end if;
        v_queue := _next_candidate(v_queue, v_sliced, v_leads, v_scores, v_ats, v_job_ids, v_classes, p_backfill, v_shapes, v_limits_s,
                                   v_reasons, v_later, v_dead, v_full, v_preempts);
        v_row := v_queue[1];
        exit when v_row is null;
        v_class := v_classes[v_row];  v_limit_s := v_limits_s[v_class];
        if v_shape <> v_shapes[v_class] then
            v_shape := v_shapes[v_class];  v_from := s.alt_from[v_shape];  v_to := s.alt_to[v_shape];
            v_least := s.leasts[v_shape];  v_gpus := s.gpus[v_shape];  v_cpus := s.cpus[v_shape];  v_mem := s.mems[v_shape];
            v_exclusive := s.exclusives[v_shape];
            v_allow := case when s.listed[v_shape] then _allow_nodes(
                v_node_ids, s.shape_ids[v_shape], p_what_if, c.claim_nodes[-1000000 - s.shape_ids[v_shape]]) end;
        end if;
        -- Has any of its groups reached its maximum number of claims since the last check?
        if not v_full[v_shape] and w.checked[v_shape] < cardinality(v_heads) then
            w.checked[v_shape] := cardinality(v_heads);
            v_group := _full_group(v_alt_groups, v_group_from[v_from], v_group_to[v_to], v_claims, s.depths[v_shape]);
            v_full[v_shape] := v_group is not null;
            w.behind[v_shape] := coalesce(w.behind[v_shape], nullif(v_claims[2 * v_group], 0));
        end if;
        if v_full[v_shape] and s.defers[v_class] and not p_backfill then
            v_later[v_class] := true;
            continue;
        end if;
        v_after_ats[v_class] := v_ats[v_row];  v_after_ids[v_class] := v_job_ids[v_row];
        if v_limited then
            v_short := _limits_left(v_left, v_buckets, v_needs, s.use_from[v_class], s.use_to[v_class]);
            v_reasons[v_class] := s.limit_reasons[v_short[1]];
            continue when v_short <> '{}';
        end if;
        v_looked := v_looked + 1;
        v_limit := case when v_limit_s = v_unlimited then v_far / 2 else v_limit_s::bigint * 1000000 end;
        v_wish := s.switches[v_shape];  v_lapse := null;
        if v_wish is not null then
            v_lapse := (s.waits_s[v_shape] + extract(epoch from v_ats[v_row] - p_now)) * 1000000;
            v_wish := case when v_lapse <= 0 then null else v_wish end;
        end if;

        -- Place: an array starts as many tasks as fit.
        v_tasks := v_counts[v_row];
        while v_tasks > 0 and v_limit_s <= v_dead[v_shape] and (v_wish is null or v_limit_s <= w.dead_wish[v_shape]) loop
            v_most := s.mosts[v_shape];
            if v_most > v_least and v_limited then
                v_most := _most_nodes(v_least, v_most, v_left, v_buckets, v_needs, v_mores, s.use_from[v_class], s.use_to[v_class]);
            end if;
            if v_most = 1 then
                v_found := _find_nodes(
                    v_free, v_points, v_heads, v_node_groups, v_allow, v_group_gpus, v_group_cpus, v_group_mems, v_domains, p_max_level,
                    v_from, v_to, v_alt_spreads, v_alt_words, v_gpus, v_cpus, v_mem, v_exclusive, v_limit, s.bookings[v_shape], null, 1, null);
            else
                v_found := _place_gang(
                    v_free, v_points, v_heads, v_node_groups, v_allow, v_blocks, v_group_gpus, v_group_cpus, v_group_mems, v_domains,
                    p_max_level, v_from, v_to, v_alt_spreads, v_alt_words, v_alt_partitions, v_group_from, v_group_to, v_alt_groups,
                    v_gpus, v_cpus, v_mem, v_exclusive, v_limit, s.bookings[v_shape], v_least, v_most, v_wish);
            end if;
            if v_found.heads is not null then
                v_heads := v_found.heads;
            end if;
            if v_found.points is not null then
                v_points := v_found.points;
                v_allocs := _plan_allocations(v_allocs, v_points, v_heads, 1, v_node_groups, v_group_gpus, v_group_cpus, v_group_mems);
            end if;
            if v_found.picks[1] is null then
                -- If only a point was in the way, shorter jobs of the shape may still start.
                if v_wish is null then
                    v_dead[v_shape] := least(v_limit_s - 1, v_found.blocked_at / 1000000);
                else
                    w.dead_wish[v_shape] := least(v_limit_s - 1, v_found.blocked_at / 1000000);
                end if;
                exit;
            end if;
            v_first := cardinality(v_allocs);
            v_allocs := _allocate_nodes(v_allocs, v_free, v_nodes, v_found.picks, v_gpus, v_cpus, v_mem, v_exclusive,
                                        v_job_ids[v_row], v_alt_partitions[v_found.alternative], v_limit_s);
            v_free := _take_nodes(v_free, v_allocs, v_first, v_node_groups, v_group_gpus, v_group_cpus, v_all);
            if cardinality(v_points) > v_nodes then
                v_points := _take_at_points(v_points, v_allocs, v_first, v_limit);
            end if;
            v_tasks := v_tasks - 1;  v_started := v_started + 1;
            exit when v_started >= p_start_limit;
            if v_limited then
                v_left := _use_limits(v_left, v_consumes, v_buckets, v_needs, v_mores, s.use_from[v_class], s.use_to[v_class],
                                      cardinality(v_found.picks) - v_least);
                v_short := _limits_left(v_left, v_buckets, v_needs, s.use_from[v_class], s.use_to[v_class]);
                v_reasons[v_class] := s.limit_reasons[v_short[cardinality(v_short)]];
            end if;
            exit when v_reasons[v_class] is not null;
        end loop;
        exit when v_started >= p_start_limit and v_started > 0;
        continue when v_tasks = 0 or v_reasons[v_class] is not null;

        -- Protect it, or let it end other jobs.
        v_may_end := v_preempts[v_class] and w.tries < v_max_preempt;
        v_reason := case when v_full[v_shape] and w.behind[v_shape] is not null then 'Priority' else 'Resources' end;
        if not v_may_end and (v_full[v_shape] or v_limit >= w.nowhere[v_shape] or s.depths[v_shape] = 0) then
            w.refused[v_shape] := coalesce(w.refused[v_shape], v_reason);
            continue;
        end if;
        -- The first releases are enough, mostly.
        if not w.released or (w.release_to is not null and (v_preempts[v_class] or (v_least > v_few and w.first_ends <= v_soon))) then
            w.first_ends := case when v_preempts[v_class] then null when v_least <= v_few then v_soon else 20 * v_soon end;
            select r.ats, r.positions, r.gpus, r.cpus, r.mems, r.complete_to, true,
                   case when p_digest then hash_record_extended(r, w.release_digest) end
              into w.release_ats, w.release_nodes, w.release_gpus, w.release_cpus, w.release_mems, w.release_to, w.released, w.release_digest
              from _plan_releases(p_now, v_node_ids, p_without, null, null, w.first_ends) as r;
        end if;
        loop
            v_start := _protect_job(
                p_now, v_job_ids[v_row], v_may_end, c.qos_ids[v_class], coalesce(p_without, '{}') || _every(w.victims, 4, 1), v_node_ids,
                v_from, v_to, v_group_from, v_group_to, v_alt_groups, v_blocks, v_wish, v_lapse, v_node_groups, v_free, p_max_level,
                v_group_gpus, v_group_cpus, v_group_mems, v_domains, v_least, v_gpus, v_cpus, v_mem, v_exclusive, v_limit, v_allow, s.bookings[v_shape],
                w.release_ats, w.release_nodes, w.release_gpus, w.release_cpus, w.release_mems, w.release_to, v_allocs, v_points, v_heads,
                (extract(epoch from c.claim_ats[-1000000 - s.shape_ids[v_shape]] - p_now) * 1000000)::bigint);
            if v_start.victims is not null then
                w.victims := w.victims || v_start.victims;
                v_points := _free_victims(p_now, v_points, v_node_ids, v_start.victims);
            end if;
            exit when v_start.victims is null and not v_start.short;
            -- The walk needs more of them: read 20 times as many, in the end all.
            w.first_ends := case when v_start.short then 20 * w.first_ends end;
            select r.ats, r.positions, r.gpus, r.cpus, r.mems, r.complete_to
              into w.release_ats, w.release_nodes, w.release_gpus, w.release_cpus, w.release_mems, w.release_to
              from _plan_releases(p_now, v_node_ids, p_without, _every(w.victims, 4, 1), _every(w.victims, 4, 4), w.first_ends) as r;
            exit when v_start.victims is not null;
        end loop;
        if v_may_end then
            w.tries := w.tries + 1;
            v_preempts[v_class] := v_start.victims is not null;
            if v_start.victims is null and (v_full[v_shape] or s.depths[v_shape] = 0) then
                w.refused[v_shape] := coalesce(w.refused[v_shape], v_reason);
                continue;
            end if;
        end if;
        v_head := cardinality(v_heads) / 10 + 1;
        w.reported := w.reported || array[v_job_ids[v_row], case when v_start.at is null then 0 else v_head end, v_start.fitting,
                                          c.kept_shape_ids[v_class]];
        if v_start.at is null then
            -- Its nodes are down, or allocated without an end in sight: it blocks no other job.
            w.nowhere[v_shape] := v_limit;
            w.refused[v_shape] := coalesce(w.refused[v_shape], case when v_wish is null then 'ReqNodeNotAvail' else 'Resources' end);
            continue;
        end if;
        w.refused[v_shape] := coalesce(w.refused[v_shape], 'Resources');
        v_first := cardinality(v_points) + 1;
        v_points := _pin_nodes(v_points, v_head, v_start.at, v_start.at + v_limit, v_start.fit, v_start.then_gpus, v_start.then_cpus,
                               v_start.then_mems, v_least, case when v_exclusive then -1 else v_gpus end, v_cpus, v_mem,
                               v_node_groups, v_group_gpus, v_group_cpus, v_group_mems);
        v_heads := v_heads || array[case when v_exclusive then -1 else v_gpus end, v_cpus, v_mem, v_first, cardinality(v_points) + 1, v_first,
                                    v_start.at, v_start.at + v_limit, cardinality(v_allocs) + 1, v_least];
        v_allocs := _plan_allocations(v_allocs, v_points, v_heads, v_head, v_node_groups, v_group_gpus, v_group_cpus, v_group_mems);
        if v_start.victims is null and s.shape_ids[v_shape] > -1000000 then
            v_claims := _claim_groups(v_claims, v_alt_groups, v_group_from[v_from], v_group_to[v_to], v_job_ids[v_row]);
        elsif v_limited then
            -- Jobs that start in the meantime must not use up the limits it needs.
            v_left := _use_limits(v_left, v_consumes, v_buckets, v_needs, v_mores, s.use_from[v_class], s.use_to[v_class], 0);
        end if;
    end loop;

    w.free := v_free;  w.points := v_points;  w.heads := v_heads;  w.allocs := v_allocs;  w.claims := v_claims;  w.lefts := v_left;
    w.dead := v_dead;  w."full" := v_full;  w.reasons := v_reasons;  w.later := v_later;  w.preempts := v_preempts;
    w.after_ats := v_after_ats;  w.after_ids := v_after_ids;  w.looked := v_looked;  w.started := v_started;
    w.more := v_started > 0 and v_started >= p_start_limit;
    return w;
end;
$$;
