-- odc._walk_queue: one walk over the queue: place each job on nodes that fit now; protect it if there are none: it gets a planned
-- start and is pinned to nodes. Nothing is released in a walk, so once a job is refused, no longer job of its shape can start.
-- Only this function changes the plan's arrays; ../README.md describes them, and follows a job through a walk.
-- Arguments  p_skip  jobs that are not in the queue;  p_backfill  the second walk;  p_max_level  see _free_lists
--            p_classes, p_shapes  from _plan_classes and _load_pass; arrays that inner loops read are arguments of their own
--            p_node_ids … p_group_domains  from _plan_nodes;  p_alt_spreads … p_consumes  from _load_pass
--            p_job_ids … p_lasts  from _plan_slice;  the others  the state so far, which it returns changed
create or replace function odc._walk_queue(
    p_now timestamptz, p_what_if jsonb, p_start_limit integer, p_chunk integer, p_without bigint[], p_skip bigint[], p_digest boolean,
    p_backfill boolean, p_max_level integer, p_classes odc.class_lists, p_shapes odc.shape_lists, p_node_ids integer[],
    p_node_groups integer[], p_blocks integer[], p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[],
    p_group_domains integer[], p_alt_spreads boolean[], p_alt_words bigint[], p_alt_partitions integer[], p_alt_groups integer[],
    p_group_from integer[], p_group_to integer[], p_class_shapes integer[], p_limits_s integer[], p_buckets integer[], p_needs bigint[],
    p_mores bigint[], p_consumes boolean[], p_job_ids bigint[], p_job_classes integer[], p_ats timestamptz[], p_counts integer[],
    p_leads bigint[], p_scores float8[], p_lasts boolean[], inout p_free bigint[], inout p_points bigint[], inout p_protected bigint[],
    inout p_allocs bigint[], inout p_claims bigint[], inout p_lefts bigint[], inout p_spans bigint[], inout p_gives bigint[],
    inout p_used integer[], inout p_keepers bigint[], inout p_reported bigint[], inout p_victims bigint[], inout p_dead integer[],
    inout p_nowhere bigint[], inout p_checked integer[], inout p_full boolean[], inout p_behind bigint[], inout p_refused text[],
    inout p_reasons text[], inout p_later boolean[], inout p_preempts boolean[], inout p_reads integer[], inout p_after_ats timestamptz[],
    inout p_after_ids bigint[], inout p_looked integer, inout p_started integer, inout p_tries integer, inout p_placed integer,
    inout p_asked integer, inout p_queue_digest bigint, inout p_releases odc.release_lists)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_limited constant boolean := p_shapes.use_from is not null;  v_list_full constant boolean := 0 = any (p_shapes.gpus);
    v_sliced constant integer := cardinality(p_job_ids);  v_queue integer[] := array[0, v_sliced];  v_row integer := 0;
    v_class integer;  v_shape integer := 0;  v_job candidate;  v_allow boolean[];  v_tasks integer;  v_group integer;
    v_limits record := _limits_now('{}', '{}', '{}', '{}', '{}', 1, 0, 0, 0, null, true, 0);
    v_found picked_nodes;  v_start record;  v_read record;  v_first integer;  v_extra integer;  v_rows record;
begin
    loop
        -- The next job. More rows of a class are read once its last one was considered.
        if p_lasts[v_row] and _is_open(p_reasons[v_class], p_later[v_class], p_backfill, v_job.limit_s, p_dead[v_shape], p_full[v_shape],
                                       p_preempts[v_class]) then
            v_rows := _read_rows(p_now, p_backfill, _describe_class(p_classes, v_class), v_row, coalesce(p_chunk, p_reads[v_class]), p_skip,
                                 p_digest, p_queue_digest, v_queue, p_job_ids, p_ats, p_counts, p_leads, p_scores);
            p_queue_digest := v_rows.p_queue_digest;
            if v_rows.read_count is not null then
                v_queue := v_rows.p_queue;  p_job_ids := v_rows.p_job_ids;  p_ats := v_rows.p_ats;  p_counts := v_rows.p_counts;
                p_leads := v_rows.p_leads;  p_scores := v_rows.p_scores;  p_reads[v_class] := v_rows.read_count;
                p_job_classes := p_job_classes || v_rows.classes;  p_lasts[cardinality(p_job_ids)] := true;
            end if;
        end if;
        v_queue := _next_candidate(v_queue, v_sliced, p_leads, p_scores, p_ats, p_job_ids, p_job_classes, p_backfill, p_class_shapes,
                                   p_limits_s, p_reasons, p_later, p_dead, p_full, p_preempts);
        v_row := v_queue[1];  v_class := p_job_classes[v_row];
        exit when v_row is null;
        if v_shape <> p_class_shapes[v_class] then
            v_shape := p_class_shapes[v_class];
            v_allow := case when p_shapes.listed[v_shape] then _allow_nodes(
                p_node_ids, p_shapes.shape_ids[v_shape], p_what_if, p_classes.claim_nodes[-1000000 - p_shapes.shape_ids[v_shape]]) end;
        end if;
        v_job := _describe_job(p_shapes, p_job_ids[v_row], v_class, v_shape, p_limits_s[v_class], extract(epoch from p_now - p_ats[v_row]));
        -- Has any of its groups reached its maximum number of claims since the last check?
        if not p_full[v_shape] and p_checked[v_shape] < cardinality(p_protected) then
            p_checked[v_shape] := cardinality(p_protected);
            v_group := _full_group(p_alt_groups, v_job.groups_from, v_job.groups_to, p_claims, v_job.depth);
            p_full[v_shape] := v_group is not null;  p_behind[v_shape] := coalesce(p_behind[v_shape], nullif(p_claims[2 * v_group], 0));
        end if;
        p_later[v_class] := p_backfill or (p_full[v_shape] and p_shapes.defers[v_class]);
        continue when p_later[v_class] and not p_backfill;
        p_after_ats[v_class] := p_ats[v_row];  p_after_ids[v_class] := v_job.job_id;

        v_tasks := p_counts[v_row];     -- An array starts as many tasks as fit.
        while v_tasks > 0 and (p_started < p_start_limit or p_started = 0) is not false loop
            while v_limited loop
                v_limits := _limits_now(p_lefts, p_spans, p_buckets, p_needs, p_mores, v_job.use_from, v_job.use_to, v_job.limit_us,
                                        v_job.least, v_job.most, not p_full[v_shape] or p_preempts[v_class], v_job.depth);
                exit when v_limits.unread is null;
                v_read := _read_limit_ends(p_now, v_limits.unread, p_lefts, p_spans, p_gives, p_used, p_shapes, p_limits_s, p_digest,
                                           p_releases.digest);
                p_spans := v_read.spans;  p_gives := v_read.gives;  p_releases.digest := v_read.release_digest;
            end loop;
            exit when v_limits.lacking <> '{}' or v_job.limit_s > p_dead[v_shape] or v_job.limit_s > p_dead[v_job.slot];
            v_found := _place_job(
                v_job, coalesce(v_limits.most, v_job.most), p_shapes, p_node_ids, v_list_full, p_placed, p_allocs, p_free, p_points,
                p_protected, p_node_groups, v_allow, p_blocks, p_group_gpus, p_group_cpus, p_group_mems, p_group_domains, p_max_level,
                p_alt_spreads, p_alt_words, p_alt_partitions, p_group_from, p_group_to, p_alt_groups);
            p_placed := coalesce(v_found.placed, p_placed);
            if v_found.protected is not null then
                p_protected := v_found.protected;
            end if;
            if v_found.points is not null then
                p_points := v_found.points;
                p_allocs := _plan_allocations(p_allocs, p_points, p_protected, 1, p_node_groups, p_group_gpus, p_group_cpus, p_group_mems);
            end if;
            if v_found.picks[1] is null then
                -- If only a point was in the way, shorter jobs of the shape may still start.
                p_dead[v_job.slot] := least(v_job.limit_s - 1, v_found.blocked_at / 1000000);
                exit;
            end if;
            v_first := cardinality(p_allocs);  v_extra := cardinality(v_found.picks) - v_job.least;
            if v_found.allocs is not null then
                p_free := v_found.free;  p_allocs := v_found.allocs;
            else
                p_allocs := _allocate_nodes(p_allocs, p_free, cardinality(p_node_ids), v_found.picks, v_job.gpus, v_job.cpus, v_job.mem,
                                            v_job.exclusive, v_job.job_id, p_alt_partitions[v_found.alternative], v_job.limit_s);
                p_free := _take_nodes(p_free, p_allocs, v_first, p_node_groups, p_group_gpus, p_group_cpus, v_list_full);
                if cardinality(p_points) > cardinality(p_node_ids) then
                    p_points := _take_at_points(p_points, p_allocs, v_first, v_job.limit_us);
                end if;
            end if;
            v_tasks := v_tasks - 1;  p_started := p_started + 1;
            if v_limited then
                p_lefts := _use_limits(p_lefts, p_consumes, p_buckets, p_needs, p_mores, v_job.use_from, v_job.use_to, v_extra);
                p_spans := _take_at_spans(p_spans, p_buckets, p_needs, p_mores, v_job.use_from, v_job.use_to, v_extra, v_job.limit_us);
                v_first := cardinality(p_used);  p_used[v_first + 1] := v_class;  p_used[v_first + 2] := v_extra;
            end if;
        end loop;
        exit when p_started >= p_start_limit and p_started > 0;
        p_looked := p_looked + (v_limits.lacking = '{}' or v_limits.wait or v_tasks < p_counts[v_row])::integer;
        continue when v_tasks = 0;

        -- Protect it, or let it end other jobs.
        v_start := _protect_job(
            p_now, v_job, v_limits.lacking, v_limits.tight, v_limits.wait, p_full[v_shape], p_behind[v_shape], p_preempts[v_class], p_tries,
            p_nowhere[v_shape], p_classes.kept_shape_ids[v_class], p_shapes.preempting, p_classes.qos_ids[v_class],
            (extract(epoch from p_classes.claim_ats[-1000000 - p_shapes.shape_ids[v_shape]] - p_now) * 1000000)::bigint, p_without,
            p_digest, p_node_ids, p_group_from, p_group_to, p_alt_groups, p_blocks, p_node_groups, p_free, p_max_level, p_group_gpus,
            p_group_cpus, p_group_mems, p_group_domains, v_allow, p_releases, p_allocs, p_points, p_protected, p_victims, p_lefts, p_spans,
            p_buckets, p_needs, p_mores, p_gives, p_used, case when v_limits.tight <> '{}' then p_shapes.use_from end,
            case when v_limits.tight <> '{}' then p_shapes.use_to end, p_limits_s,
            case when p_shapes.component_to[v_shape] > 0 then p_shapes end, p_asked);
        if (v_start.releases).ats is not null then
            p_releases := v_start.releases;
        end if;
        p_points := _free_victims(p_now, p_points, p_node_ids, v_start.victims);  p_victims := p_victims || v_start.victims;
        p_tries := v_start.tries;  p_asked := v_start.asked;  p_preempts[v_class] := v_start.preempts;  p_nowhere[v_shape] := v_start.nowhere;
        p_reasons[v_class] := p_shapes.limit_reasons[v_start.lacks];  p_keepers[v_class] := v_limits.holder;
        p_refused[v_shape] := coalesce(p_refused[v_shape], v_start.refusal);  p_reported := p_reported || v_start.reported;
        continue when v_start.reserved_from is null;
        if v_start.points is not null then
            p_points := v_start.points;  p_protected := v_start.protected;  p_allocs := v_start.allocs;
        else
            p_protected := p_protected || v_start.entry;
            p_points := _pin_nodes(p_points, p_protected, v_start.fit, v_start.then_gpus, v_start.then_cpus, v_start.then_mems, p_node_groups,
                                   p_group_gpus, p_group_cpus, p_group_mems);
            p_allocs := _plan_allocations(p_allocs, p_points, p_protected, cardinality(p_protected) / 10, p_node_groups, p_group_gpus, p_group_cpus,
                                          p_group_mems);
        end if;
        if v_limited then
            p_spans := _reserve_limits(
                p_spans, p_lefts, v_limits.lacking, p_buckets, p_needs, p_mores, p_consumes, v_job.use_from, v_job.use_to, v_job.job_id,
                v_start.reserved_from, v_start.at + v_job.limit_us, p_gives, p_used, p_shapes.use_from, p_shapes.use_to, p_limits_s);
        end if;
        if v_start.claims then
            p_claims := _claim_groups(p_claims, p_alt_groups, v_job.groups_from, v_job.groups_to, v_job.job_id);
        end if;
    end loop;
end;
$$;
