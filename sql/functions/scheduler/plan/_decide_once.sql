-- odc._decide_once: one plan: load, order, place, protect, preempt, report. README.md has the algorithm and its arrays.
-- It walks the queue in order. A job takes nodes that fit now (_find_nodes, _place_gang). A job that does not fit becomes
-- protected while fewer than plan_depth protected jobs claim any of its groups: it gets a planned start and is pinned to
-- nodes (_protect_job). Later jobs start only if they do not delay it (_fits_beside_points). If its QOS preempts others, it
-- may end some of them (_plan_preempt); in later passes it claims their nodes and comes before all other jobs. Once a job
-- is refused, no longer job of its shape can start (v_dead). A class over a limit is skipped and never protected.
-- Arguments  as decide, and  p_kept  jobs that keep their planned starts: each claims the nodes on which it was planned
create or replace function odc._decide_once(
    p_now timestamptz, p_what_if jsonb, p_start_limit integer, p_chunk integer, p_depth integer, p_without bigint[],
    p_digest boolean, p_kept bigint[], p_only bigint[])
returns odc.decision
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_unlimited constant integer := 2147483647;  v_far constant bigint := 8000000000000000000;
    v_max_preempt constant integer := 32;  v_few constant integer := 4;  v_soon constant integer := 300;
    c record;                   -- _plan_classes
    n record;                   -- _plan_nodes
    q record;                   -- _plan_slice, _plan_more
    r record;                   -- _plan_releases
    v_plan decision;
    -- Read by _load_pass. Per node, group and shape:
    v_node_ids integer[];  v_node_groups integer[];  v_blocks integer[];  v_group_gpus integer[];  v_group_cpus integer[];
    v_group_mems integer[];  v_domains integer[];  v_max_level integer;
    v_shape_ids integer[];  v_leasts integer[];  v_mosts integer[];  v_gpus integer[];  v_cpus integer[];  v_mems integer[];
    v_exclusives boolean[];  v_listed boolean[];  v_bookings integer[];  v_switches integer[];  v_waits_s integer[];
    v_alt_from integer[];  v_alt_to integer[];  v_group_from integer[];  v_group_to integer[];  v_alt_groups integer[];
    v_alt_partitions integer[];  v_alt_spreads boolean[];  v_alt_words bigint[];  v_depths integer[];
    -- Limits: per class its rows, per row, per bucket. What jobs leave of them:
    v_use_from integer[];  v_use_to integer[];  v_buckets integer[];  v_needs bigint[];  v_mores bigint[];  v_consumes boolean[];
    v_limit_reasons text[];  v_left bigint[];  v_short integer[];
    -- What this plan changes (README.md): free amounts, points and protected jobs, starts and allocations, victims.
    v_free bigint[];  v_points bigint[];  v_heads bigint[] := '{}';  v_head integer := 0;  v_starts bigint[] := '{}';  v_start_to integer := 0;
    v_allocs bigint[] := '{}';  v_reported bigint[] := '{}';  v_victims bigint[] := '{}';  v_claims bigint[];
    -- Per shape: longer jobs cannot start (with a wish for few blocks); no start is in sight for a job this long; its claims are used up, as
    -- checked with so many protected jobs; reason; protected job in front
    v_dead integer[];  v_dead_wish integer[];  v_nowhere bigint[];  v_full boolean[];  v_checked integer[];  v_refused text[];  v_behind bigint[];
    -- Per class: position of its shape; reason of a limit; deferred to the second walk; rows to read next; last row tried
    v_shapes integer[];  v_limits_s integer[];  v_defers boolean[];  v_preempts boolean[];  v_reasons text[];  v_later boolean[];
    v_reads integer[];  v_after_ats timestamptz[];  v_after_ids bigint[];  v_caps integer[];  v_without bigint[];
    -- Rows of the queue; runs of them (_next_candidate)
    v_job_ids bigint[];  v_ats timestamptz[];  v_counts integer[];  v_leads bigint[];  v_scores float8[];  v_classes integer[];
    v_lasts boolean[];  v_sliced integer;  v_queue integer[];  v_row integer;
    -- The job at hand: class, shape, what it needs
    v_class integer;  v_shape integer;  v_limit_s integer;  v_limit bigint;  v_tasks integer;  v_least integer;  v_need_gpus integer;
    v_need_cpus integer;  v_need_mem integer;  v_exclusive boolean;  v_booking integer;  v_allow boolean[];  v_allowed integer := 0;
    v_wish integer;  v_lapse bigint;  v_most integer;  v_claimed boolean;  v_told bigint;  v_group integer;  v_took integer;
    v_found record;  v_start record;  v_ended record;  v_tries integer := 0;  v_looked integer := 0;
    v_hit boolean;  v_released boolean := false;  v_backfill boolean;  v_digest bytea;  v_class_digest bytea;  v_queue_digest bigint := 0;  v_release_digest bigint := 0;
begin
    v_plan.looked := 0;  v_plan.classes := 0;  v_plan.more := false;
    select * into c from _plan_classes(p_now, p_what_if, p_without, p_kept, p_only);
    if c.shape_ids is null then
        return v_plan;
    end if;
    v_plan.classes := cardinality(c.shape_ids);
    v_limits_s := c.limits_s;
    select * into n from _plan_nodes(p_without);
    v_node_ids := coalesce(n.node_ids, '{}');  v_node_groups := coalesce(n.groups, '{}');  v_blocks := n.blocks;
    v_group_gpus := n.group_gpus;  v_group_cpus := n.group_cpus;  v_group_mems := n.group_mems;  v_domains := n.group_domains;
    v_class_digest := case when p_digest then int8send(hash_record_extended(c, 0)) || int8send(hash_record_extended(n, 0)) end;
    c.depths := case when p_depth is null then c.depths else array_fill(p_depth, array[v_plan.classes]) end;
    select l.* into v_shape_ids, v_leasts, v_mosts, v_gpus, v_cpus, v_mems, v_exclusives, v_listed, v_bookings, v_switches, v_waits_s,
           v_alt_from, v_alt_to, v_group_from, v_group_to, v_alt_groups, v_alt_partitions, v_alt_spreads, v_alt_words, v_refused,
           v_dead, v_full, v_depths, v_use_from, v_use_to, v_buckets, v_needs, v_mores, v_left, v_consumes, v_limit_reasons,
           v_shapes, v_defers, v_preempts, v_digest
      from _load_pass(p_now, p_what_if, p_digest, n.group_ids, n.blocks is not null, c.shape_ids, c.limits_s, c.uids, c.accounts, c.qos_ids, c.backfills, c.depths,
                      c.kept_shape_ids, c.claim_shapes) as l;
    select greatest(coalesce(max(u), 0), 8) into v_max_level from unnest(v_group_gpus) as u;
    v_free := _free_lists(n.groups, n.masks, n.gpus, n.cpus, n.mems, n.jobs, v_group_gpus, v_group_cpus, v_max_level, 0 = any (v_gpus));
    v_points := _booking_points(p_now, v_node_ids);
    v_without := case when c.claim_jobs is null then p_without else coalesce(p_without, '{}') || c.claim_jobs end;
    v_dead_wish := array_fill(v_unlimited, array[cardinality(v_dead)]);
    v_nowhere := array_fill(v_far, array[cardinality(v_dead)]);
    v_checked := array_fill(-1, array[cardinality(v_dead)]);
    v_claims := array_fill(0::bigint, array[2 * coalesce(cardinality(v_group_gpus), 0)]);
    v_reads := array_fill(8, array[v_plan.classes]);
    v_reasons := array_fill(null::text, array[v_plan.classes]);
    v_behind := array_fill(null::bigint, array[cardinality(v_dead)]);
    v_later := array_fill(false, array[v_plan.classes]);
    v_after_ats := array_fill('-infinity'::timestamptz, array[v_plan.classes]);
    v_after_ids := array_fill(0::bigint, array[v_plan.classes]);

    -- Order: first that of the queue, then the policies' backfill order, for classes that were deferred to it.
    <<walks>>
    for walk in 1..2 loop
        v_backfill := walk = 2;
        exit when v_backfill and not true = any (v_later);
        v_caps := _class_caps(
            v_free, cardinality(v_node_ids), coalesce(cardinality(v_group_gpus), 0), v_without is not null, v_leasts, v_gpus, v_cpus, v_exclusives,
            v_alt_from, v_alt_to, v_group_from, v_group_to, v_alt_groups, v_depths, v_dead, v_full,
            v_shapes, v_limits_s, v_backfill, v_reasons, v_later, v_preempts);
        continue when 0 = all (v_caps);
        select * into q from _plan_slice(
            p_now, v_backfill, array_fill(coalesce(cardinality(p_only) + 1, p_chunk, greatest(1, least(16, 300 / v_plan.classes)))
                                          + (v_without is not null)::integer, array[v_plan.classes]),
            v_without, v_caps, v_after_ats, v_after_ids, c.head_ats, c.head_ids, c.head_counts, c.shape_ids, c.limits_s, c.uids, c.accounts,
            c.qos_ids, c.nices, c.tiers, c.orderings, c.depths, c.max_waits_s, c.backfills, c.sizes, c.fairs, c.statics, c.age_weight,
            c.max_age_s, p_only);
        v_queue_digest := case when p_digest then hash_record_extended(q, v_queue_digest) end;
        continue when q.job_ids is null;
        v_job_ids := q.job_ids;  v_classes := q.classes;  v_counts := q.counts;  v_ats := q.queued_ats;
        v_leads := q.leads;  v_scores := q.scores;  v_lasts := q.lasts;
        v_sliced := cardinality(v_job_ids);  v_row := 0;  v_queue := array[0, v_sliced];
        loop
            if v_lasts[v_row] and _is_open(v_reasons[v_class], v_later[v_class], v_backfill, v_limit_s, v_dead[v_shape], v_full[v_shape], v_preempts[v_class]) then
                -- Read more rows of this class.
                select * into q from _plan_more(
                    p_now, v_backfill, coalesce(p_chunk, v_reads[v_class]), v_without, v_ats[v_row], v_job_ids[v_row], c.shape_ids[v_class],
                    v_limit_s, c.uids[v_class], c.accounts[v_class], c.qos_ids[v_class], c.nices[v_class], c.tiers[v_class],
                    c.orderings[v_class], c.depths[v_class], c.max_waits_s[v_class], c.backfills[v_class], c.sizes[v_class], c.fairs[v_class],
                    c.statics[v_class], c.age_weight, c.max_age_s);
                v_queue_digest := case when p_digest then hash_record_extended(q, v_queue_digest) end;
                if q.job_ids is not null then
                    v_reads[v_class] := 32;
                    v_took := cardinality(v_job_ids);
                    v_job_ids := v_job_ids || q.job_ids;  v_counts := v_counts || q.counts;  v_ats := v_ats || q.queued_ats;
                    v_leads := v_leads || q.leads;  v_scores := v_scores || q.scores;
                    v_classes := v_classes || array_fill(v_class, array[cardinality(q.job_ids)]);
                    v_lasts := v_lasts || array_fill(false, array[cardinality(q.job_ids) - 1]) || true;
                    v_queue := v_queue[:2] || _queue_run(v_queue[3:], v_took + 1, cardinality(v_job_ids), v_leads, v_scores, v_ats, v_job_ids);
                end if;
            end if;
            v_queue := _next_candidate(v_queue, v_sliced, v_leads, v_scores, v_ats, v_job_ids, v_classes, v_backfill, v_shapes, v_limits_s,
                                       v_reasons, v_later, v_dead, v_full, v_preempts);
            v_row := v_queue[1];
            exit when v_row is null;
            v_class := v_classes[v_row];  v_shape := v_shapes[v_class];  v_limit_s := v_limits_s[v_class];
            if not v_full[v_shape] and v_checked[v_shape] < v_head then
                v_checked[v_shape] := v_head;
                v_group := _full_group(v_alt_groups, v_group_from[v_alt_from[v_shape]], v_group_to[v_alt_to[v_shape]], v_claims, v_depths[v_shape]);
                v_full[v_shape] := v_group is not null;
                v_behind[v_shape] := coalesce(v_behind[v_shape], nullif(v_claims[2 * v_group], 0));
            end if;
            if v_full[v_shape] and v_defers[v_class] and not v_backfill then
                v_later[v_class] := true;
                continue;
            end if;
            v_after_ats[v_class] := v_ats[v_row];  v_after_ids[v_class] := v_job_ids[v_row];
            if v_use_from is not null then
                v_short := _limits_left(v_left, v_buckets, v_needs, v_use_from[v_class], v_use_to[v_class]);
                v_reasons[v_class] := v_limit_reasons[v_short[1]];
                continue when v_short <> '{}';
            end if;

            v_looked := v_looked + 1;
            v_limit := case when v_limit_s = v_unlimited then v_far / 2 else v_limit_s::bigint * 1000000 end;
            if v_allowed <> v_shape then
                v_least := v_leasts[v_shape];  v_need_gpus := v_gpus[v_shape];  v_need_cpus := v_cpus[v_shape];  v_need_mem := v_mems[v_shape];
                v_exclusive := v_exclusives[v_shape];  v_booking := v_bookings[v_shape];  v_claimed := v_shape_ids[v_shape] < -1000000;
                v_allow := null;
                if v_listed[v_shape] then
                    v_allow := _allow_nodes(v_node_ids, v_shape_ids[v_shape], p_what_if,
                                            case when v_claimed then c.claim_nodes[-1000000 - v_shape_ids[v_shape]] end);
                end if;
                v_allowed := v_shape;
            end if;
            v_wish := v_switches[v_shape];  v_lapse := null;
            if v_wish is not null then
                v_lapse := (v_waits_s[v_shape] + extract(epoch from v_ats[v_row] - p_now)) * 1000000;
                v_wish := case when v_lapse <= 0 then null else v_wish end;
            end if;

            -- Place: an array starts as many tasks as fit.
            v_tasks := v_counts[v_row];
            while v_tasks > 0 and v_limit_s <= v_dead[v_shape] and (v_wish is null or v_limit_s <= v_dead_wish[v_shape]) loop
                v_most := v_mosts[v_shape];
                if v_most > v_least and v_use_from is not null then
                    v_most := _most_nodes(v_least, v_most, v_left, v_buckets, v_needs, v_mores, v_use_from[v_class], v_use_to[v_class]);
                end if;
                if v_most = 1 then
                    v_found := _find_nodes(
                        v_free, v_points, v_heads, v_node_groups, v_allow, v_group_gpus, v_group_cpus, v_group_mems, v_domains, v_max_level,
                        v_alt_from[v_shape], v_alt_to[v_shape], v_alt_spreads, v_alt_words,
                        v_need_gpus, v_need_cpus, v_need_mem, v_exclusive, v_limit, v_booking, null, 1, null);
                else
                    v_found := _place_gang(
                        v_free, v_points, v_heads, v_node_groups, v_allow, v_blocks, v_group_gpus, v_group_cpus, v_group_mems, v_domains, v_max_level,
                        v_alt_from[v_shape], v_alt_to[v_shape], v_alt_spreads, v_alt_words, v_alt_partitions, v_group_from, v_group_to, v_alt_groups,
                        v_need_gpus, v_need_cpus, v_need_mem, v_exclusive, v_limit, v_booking, v_least, v_most, v_wish);
                end if;
                if v_found.heads is not null then
                    v_heads := v_found.heads;
                end if;
                if v_found.points is not null then
                    v_points := v_found.points;
                    v_allocs := _plan_allocations(v_allocs, v_points, v_heads, 1, v_node_groups, v_group_gpus, v_group_cpus, v_group_mems);
                end if;
                v_took := cardinality(v_found.picks);
                if v_took = 0 then
                    -- If only a point was in the way, shorter jobs of the shape may still start.
                    if v_wish is null then
                        v_dead[v_shape] := least(v_limit_s - 1, v_found.blocked_at / 1000000);
                    else
                        v_dead_wish[v_shape] := least(v_limit_s - 1, v_found.blocked_at / 1000000);
                    end if;
                    exit;
                end if;
                v_group := cardinality(v_allocs);
                v_starts[v_start_to + 1] := v_job_ids[v_row];  v_starts[v_start_to + 2] := v_alt_partitions[v_found.alternative];
                v_starts[v_start_to + 3] := v_took;  v_starts[v_start_to + 4] := v_limit_s;  v_starts[v_start_to + 5] := v_group + 1;
                v_start_to := v_start_to + 5;
                v_allocs := _allocate_nodes(v_allocs, v_free, cardinality(v_node_ids), v_found.picks, v_need_gpus, v_need_cpus, v_need_mem, v_exclusive);
                v_free := _take_nodes(v_free, v_allocs, v_group, v_node_groups, v_group_gpus, v_group_cpus);
                if cardinality(v_points) > cardinality(v_node_ids) then
                    v_points := _take_at_points(v_points, v_allocs, v_group, v_limit);
                end if;
                v_tasks := v_tasks - 1;
                if v_start_to >= 5 * p_start_limit then
                    v_plan.more := true;
                    exit walks;
                end if;
                if v_use_from is not null then
                    v_left := _use_limits(v_left, v_consumes, v_buckets, v_needs, v_mores, v_use_from[v_class], v_use_to[v_class], v_took - v_least);
                    v_short := _limits_left(v_left, v_buckets, v_needs, v_use_from[v_class], v_use_to[v_class]);
                    if v_short <> '{}' then
                        v_reasons[v_class] := v_limit_reasons[v_short[cardinality(v_short)]];
                        exit;
                    end if;
                end if;
            end loop;
            continue when v_tasks = 0 or v_reasons[v_class] is not null;

            -- Protect: find its planned start.
            if (not v_preempts[v_class] or v_tries >= v_max_preempt) and (v_full[v_shape] or v_limit >= v_nowhere[v_shape] or v_depths[v_shape] = 0) then
                v_refused[v_shape] := coalesce(v_refused[v_shape], case when v_full[v_shape] and v_behind[v_shape] is not null then 'Priority' else 'Resources' end);
                continue;
            end if;
            if v_released then
                v_released := r.complete_to is null or (v_least <= v_few and not v_preempts[v_class]);
            end if;
            if not v_released then
                select * into r from _plan_releases(p_now, v_node_ids, p_without, null, null,
                                                    case when v_least <= v_few and not v_preempts[v_class] then v_soon end);
                v_release_digest := case when p_digest then hash_record_extended(r, v_release_digest) end;
                v_released := true;
            end if;
            v_told := case when v_claimed then extract(epoch from c.claim_ats[-1000000 - v_shape_ids[v_shape]] - p_now) * 1000000 end;
            loop
                v_start := _protect_job(
                    v_alt_from[v_shape], v_alt_to[v_shape], v_group_from, v_group_to, v_alt_groups, v_blocks, v_wish, v_lapse,
                    v_node_groups, v_free, v_max_level, v_group_gpus, v_group_cpus, v_group_mems, v_domains,
                    v_least, v_need_gpus, v_need_cpus, v_need_mem, v_exclusive, v_limit, v_allow, v_booking,
                    r.ats, r.positions, r.gpus, r.cpus, r.mems, r.complete_to, v_starts, v_allocs, v_points, v_heads, v_told);
                exit when v_start.at is not null or not v_start.short;
                select * into r from _plan_releases(p_now, v_node_ids, p_without, null, null, null);
            end loop;

            -- Preempt: can it start earlier by ending other jobs?
            v_hit := false;
            if v_preempts[v_class] and v_tries < v_max_preempt then
                v_tries := v_tries + 1;
                v_ended := _plan_preempt(
                    p_now, v_job_ids[v_row], c.qos_ids[v_class], coalesce(p_without, '{}') || _every(v_victims, 4, 1), v_start.at, v_node_ids,
                    v_alt_from[v_shape], v_alt_to[v_shape], v_group_from, v_group_to, v_alt_groups, v_blocks, v_wish, v_node_groups, v_free,
                    v_group_gpus, v_group_cpus, v_group_mems, v_domains, v_least, case when v_exclusive then -1 else v_need_gpus end,
                    v_need_cpus, v_need_mem, v_limit, v_allow, v_booking,
                    r.ats, r.positions, r.gpus, r.cpus, r.mems, v_starts, v_allocs, v_points, v_heads);
                v_hit := v_ended.victims is not null;
                v_preempts[v_class] := v_hit;
                if v_hit then
                    v_victims := v_victims || array(
                        select w.v from unnest(v_ended.victims, v_ended.costs, v_ended.ends) with ordinality as u (job, cost, at, o)
                         cross join lateral unnest(array[u.job, v_job_ids[v_row], u.cost, u.at]) with ordinality as w (v, o)
                         order by u.o, w.o);
                    select * into r from _plan_releases(p_now, v_node_ids, p_without, _every(v_victims, 4, 1), _every(v_victims, 4, 4), null);
                    v_points := _free_victims(p_now, v_points, v_node_ids, v_ended.victims, v_ended.ends);
                    v_start.at := v_ended.at;  v_start.fit := v_ended.fit;  v_start.then_gpus := v_ended.then_gpus;
                    v_start.then_cpus := v_ended.then_cpus;  v_start.then_mems := v_ended.then_mems;
                elsif v_full[v_shape] or v_depths[v_shape] = 0 then
                    v_refused[v_shape] := coalesce(v_refused[v_shape], case when v_behind[v_shape] is null then 'Resources' else 'Priority' end);
                    continue;
                end if;
            end if;
            v_reported := v_reported || array[v_job_ids[v_row], case when v_start.at is null then 0 else v_head + 1 end, v_start.fitting, c.kept_shape_ids[v_class]];
            if v_start.at is null then
                -- Its nodes are down, or allocated without an end in sight: it blocks no other job.
                v_nowhere[v_shape] := v_limit;
                v_refused[v_shape] := coalesce(v_refused[v_shape], case when v_wish is null then 'ReqNodeNotAvail' else 'Resources' end);
                continue;
            end if;
            v_refused[v_shape] := coalesce(v_refused[v_shape], 'Resources');
            v_head := v_head + 1;
            v_group := cardinality(v_points) + 1;
            v_points := _pin_nodes(v_points, v_head, v_start.at, v_start.at + v_limit, v_start.fit, v_start.then_gpus, v_start.then_cpus, v_start.then_mems,
                                   v_least, case when v_exclusive then -1 else v_need_gpus end, v_need_cpus, v_need_mem,
                                   v_node_groups, v_group_gpus, v_group_cpus, v_group_mems);
            v_heads := v_heads || array[case when v_exclusive then -1 else v_need_gpus end, v_need_cpus, v_need_mem,
                                        v_group, cardinality(v_points) + 1, v_group, v_start.at, v_start.at + v_limit, cardinality(v_allocs) + 1, v_least];
            v_allocs := _plan_allocations(v_allocs, v_points, v_heads, v_head, v_node_groups, v_group_gpus, v_group_cpus, v_group_mems);
            if not v_hit and not v_claimed then
                v_claims := _claim_groups(v_claims, v_alt_groups, v_group_from[v_alt_from[v_shape]], v_group_to[v_alt_to[v_shape]], v_job_ids[v_row]);
            elsif v_use_from is not null then
                -- Jobs that start in the meantime must not use up the limits it needs.
                v_left := _use_limits(v_left, v_consumes, v_buckets, v_needs, v_mores, v_use_from[v_class], v_use_to[v_class], 0);
            end if;
        end loop;
    end loop walks;

    return _report_plan(
        p_now, v_looked, v_plan.classes, v_plan.more, v_class_digest || v_digest || int8send(v_queue_digest) || int8send(v_release_digest),
        v_starts, v_allocs, v_reported, v_heads, v_points, v_victims, v_node_ids, v_shape_ids, v_refused, v_behind,
        c.shape_ids, c.limits_s, c.uids, c.accounts, c.qos_ids, v_reasons);
end;
$$;
