-- odc._decide_once: which pending jobs start now and where, and when the others will start.
-- Reads and returns; writes nothing. _plan_classes and _plan_slice give the order, _plan_protect the protection, and
-- _plan_buckets the limits. This function is the placement between them, on local integer arrays: a node, a shape, a
-- class or a group is identified by its position in them.
--
-- It walks the queue in order. A job takes the fullest nodes that fit (or the emptiest: partition.placement). Nodes are
-- in lists by group and level; the level is the number of free GPUs (eighths of the CPUs in groups without GPUs). A gang
-- takes distinct nodes of one partition, of one type if it has GPUs, and of one EFA domain if it takes whole nodes of an
-- EFA type. If it takes whole nodes or asks for few topology blocks, its nodes lie in few blocks. A gang of n to m nodes
-- takes as many as fit.
-- A job that does not fit becomes protected while fewer than plan_depth protected jobs claim any of its groups. It gets
-- a planned start and is pinned to nodes, as a point on them. A later job may start on such a node if it ends
-- before that point, if the node has room for both, or if the pin can move to a spare node that fits as well.
-- Once a job is refused, no longer job of its shape can start (dead), so a walk tries few jobs. A job over a limit is
-- skipped with its class and never protected.
-- A job that does not fit and whose QOS preempts others may end some of them: see _plan_preempt. Its planned start is the
-- end of their grace, whatever the depth; in later passes it claims these nodes and comes before all other jobs.
--
-- Arguments, returns  as decide, and
--            p_kept  jobs that keep their planned starts: each claims the nodes on which it was planned
create or replace function odc._decide_once(
    p_now timestamptz, p_what_if jsonb, p_start_limit integer,
    p_chunk integer, p_depth integer, p_without bigint[], p_digest boolean, p_kept bigint[], p_only bigint[],
    out looked integer, out classes integer, out more boolean,
    out start_jobs bigint[], out start_partitions integer[], out start_nodes integer[],
    out start_limits_s integer[],
    out alloc_nodes integer[], out alloc_masks bigint[], out alloc_gpus integer[], out alloc_cpus integer[],
    out alloc_mems integer[],
    out head_jobs bigint[], out head_ats timestamptz[], out head_nodes text[], out head_fittings integer[],
    out head_shapes integer[],
    out refused_shapes integer[], out refused_reasons text[], out refused_heads bigint[],
    out limited_shapes integer[], out limited_limits_s integer[], out limited_uids integer[],
    out limited_accounts integer[], out limited_qos integer[], out limited_reasons text[],
    out victim_jobs bigint[], out victim_for bigint[], out victim_costs bigint[], out read_digest bytea)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_unlimited constant integer := 2147483647;
    v_never constant bigint := 8000000000000000000;
    v_n record;                 -- _plan_nodes
    v_s record;                 -- _plan_shapes
    v_c record;                 -- _plan_classes
    v_l record;                 -- _plan_buckets
    v_q record;                 -- _plan_slice
    v_r record;                 -- _plan_releases
    v_h record;  v_try record;  -- _plan_protect
    v_v record;                 -- _plan_preempt
    -- nodes
    v_node_ids integer[];  v_group integer[];  v_mask bigint[];  v_gpus integer[];  v_cpus integer[];
    v_mem integer[];       v_jobs integer[];   v_block integer[];
    v_first integer[];          -- first node of a list: (group - 1) * 64 + level + 1
    v_next integer[];  v_prev integer[];
    v_filled bigint[];          -- lists that have nodes: per level words of 60 groups, a bit each
    v_words integer;  v_alt_words bigint[];  v_some_groups bigint;
    v_place_of_bit constant integer[] := '{0,1,2,40,3,16,41,24,4,13,17,60,42,20,25,55,5,0,14,11,18,0,0,29,43,31,21,52,26,45,56,48,6,33,0,39,15,23,12,59,19,54,0,10,0,28,30,51,44,47,32,38,22,58,53,9,27,50,46,37,57,8,49,36,7,35,34}';
                                -- position (from 1) of a bit in such a word, by the remainder of the bit's value divided by 67
    v_whole integer[];          -- per group: nodes with all GPUs free
    v_group_gpus integer[];  v_group_cpus integer[];  v_group_mems integer[];  v_domain integer[];
    v_free_gpus bigint[];  v_free_cpus bigint[];  v_free_nodes bigint[];
    -- protected jobs; points: moments at which a node's free amounts matter (see _plan_protect)
    v_heads integer := 0;  v_h_at bigint[];  v_h_gpus integer[];  v_h_cpus integer[];  v_h_mem integer[];
    v_h_row integer[];           -- position in head_jobs
    v_hp_from integer[];  v_hp_next integer[];   -- its first point; its next point that may be spare
    v_hp_search integer[];  v_hp_tried integer[];  v_hp_spent boolean[];  -- in the current search: how far tried
    v_claims integer[];  v_claimer bigint[];
    v_points integer := 0;  v_pt_first integer[];  v_pt_next integer[];  v_pt_node integer[];  v_pt_head integer[];
    v_pt_at bigint[];  v_pt_end bigint[];  v_pt_gpus integer[];  v_pt_cpus integer[];  v_pt_mem integer[];
    v_pt_pin boolean[];
    v_few constant integer := 4;  v_first_ends integer;  -- how many of the first releases were read; null: all
    v_queue_digest bigint;  v_released_digest bigint;  -- of every v_q and v_m, and of every v_r, if p_digest is set
    v_short boolean;  v_released boolean := false;  v_ev_at bigint[];  v_ev_ref integer[];  v_ev_starts integer := 0;  v_st_from integer[];
    v_depth integer[];          -- per shape
    v_full integer[];           -- per shape: 1: its claims are used up; -h - 1: they were not when h jobs were protected
    v_nowhere bigint[];         -- per shape: no start is in sight for a job this long
    -- shapes
    v_shape_ids integer[];  v_count integer[];  v_max integer[];  v_need_gpus integer[];  v_need_cpus integer[];
    v_need_mem integer[];
    v_alt_from integer[];   v_alt_to integer[];  v_from integer[];  v_mid integer[];  v_to integer[];  v_alt_group integer[];
    v_alt_part integer[];
    v_alt_spread boolean[];  v_exclusive boolean[];  v_listed boolean[];  v_booking integer[];
    v_dead integer[];           -- per shape: jobs with a longer time limit cannot start
    v_dead_wish integer[];      -- the same, for jobs that ask for few topology blocks
    v_switches integer[];
    v_allow boolean[];          -- of the shape in v_allow_shape, per node: its lists allow it
    v_allow_shape integer := 0;
    v_refused text[];  v_behind bigint[];
    -- classes
    v_c_shape integer[];  v_c_limit integer[];  v_c_done boolean[];  v_c_reason text[];  v_c_last integer[];
    v_c_later boolean[];        -- deferred to the walk in the policy's backfill order
    v_c_defers boolean[];  v_depths integer[];
    v_after_ats timestamptz[];  v_after_ids bigint[];  v_cap integer[];  v_room integer[];  v_chunks integer[];
    v_left bigint[];            -- limits: the remaining amount of a bucket
    -- preemption
    v_max_preempt constant integer := 32;
    v_c_preempts boolean[];     -- per class: its jobs may end others; false once preemption did not help one
    v_without bigint[];         -- p_without, and the jobs that claim nodes
    v_claimed boolean;  v_hit boolean;  v_tries integer := 0;  v_going_at bigint[];
    v_told bigint;              -- the planned start that was promised to a job with a claim
    -- the slice
    v_m record;                 -- _plan_more
    v_job_ids bigint[];  v_ats timestamptz[];  v_leads bigint[];  v_scores float8[];  v_lasts boolean[];
    v_rows integer;  v_sliced integer;  v_row integer;  r integer;  v_reads integer[];  -- per class: number of rows to read next
    v_runs integer;  v_run_at integer[];  v_run_end integer[];  -- rows of classes read later, each run in order
    v_queue integer[];          -- runs that have rows left; the one whose next row is first in the order comes first
    v_classes integer[];  v_counts integer[];  v_backfill boolean := false;  v_any boolean;
    -- the job at hand
    s integer;  cl integer;  v_tl integer;  v_len bigint;  v_tasks integer;  k integer;  g integer;  c integer;  m integer;
    v_tg integer;  v_tc integer;  v_tm integer;  v_excl boolean;  v_ok boolean;  v_some boolean;  v_fail bigint;  v_at bigint;
    v_pick integer[] := '{}';  v_got integer;  v_want integer;  v_part integer;  v_dom integer;  v_tried integer[];
    v_moved boolean;  z integer;
    v_task integer := 0;  v_search integer := 0;  v_picked integer[];  v_kept_by integer[];  -- per node: the last that took it
    v_most integer;             -- maximum number of nodes it takes
    v_whole_nodes boolean;  v_gather boolean;
    v_kept integer;  v_keep integer[] := '{}';  -- the largest set of nodes found so far, smaller than v_most
    v_wish integer;  v_lapse bigint;  -- maximum number of topology blocks; until when
    -- loop variables and scratch values
    a integer;  e integer;  x integer;  y integer;  h integer;  p integer;  q integer;  w integer;  gr integer;  lv integer;
    i integer;  j integer;  lo integer;  v_seg integer;  v_max_level integer;  v_end bigint;
    b bigint;  f bigint;  v_bit bigint;  v_starts integer := 0;  v_allocs integer := 0;
    v_pos integer[];            -- node position of each allocation
begin
    looked := 0;  more := false;  classes := 0;
    select * into v_c from _plan_classes(p_now, p_what_if, p_without, p_kept, p_only);
    if v_c.shape_ids is null then
        return;
    end if;
    classes := cardinality(v_c.shape_ids);
    select * into v_n from _plan_nodes(p_without);
    select * into v_s from _plan_shapes(v_n.group_ids, v_c.shape_ids, p_what_if, v_c.claim_shapes);
    select * into v_l from _plan_buckets(p_now, v_c.kept_shape_ids, v_c.limits_s, v_c.uids, v_c.accounts, v_c.qos_ids,
                                      p_what_if);
    if p_digest then
        -- 64 bits each: nine times cheaper than a SHA-256 of record_send's output.
        read_digest := int8send(hash_record_extended(v_c, 0)) || int8send(hash_record_extended(v_n, 0))
                       || int8send(hash_record_extended(v_s, 0)) || int8send(hash_record_extended(v_l, 0));
    end if;
    v_left := v_l.left;
    v_node_ids := coalesce(v_n.node_ids, '{}');  v_group := v_n.groups;  v_mask := v_n.masks;
    v_gpus := coalesce(v_n.gpus, '{}');  v_cpus := coalesce(v_n.cpus, '{}');  v_mem := coalesce(v_n.mems, '{}');  v_jobs := v_n.jobs;  v_block := v_n.blocks;
    v_group_gpus := v_n.group_gpus;  v_group_cpus := v_n.group_cpus;  v_group_mems := v_n.group_mems;
    v_domain := v_n.group_domains;
    v_shape_ids := v_s.ids;  v_count := v_s.node_counts;  v_max := v_s.node_maxes;  v_need_gpus := v_s.gpus;
    v_need_cpus := v_s.cpus;  v_need_mem := v_s.mems;  v_exclusive := v_s.exclusives;  v_listed := v_s.listed;
    v_booking := v_s.booking_ids;  v_alt_from := v_s.alt_from;  v_alt_to := v_s.alt_to;
    v_from := v_s.alt_group_from;  v_mid := v_s.alt_group_mid;  v_to := v_s.alt_group_to;
    v_alt_group := v_s.alt_groups;  v_alt_part := v_s.alt_partitions;  v_alt_spread := v_s.alt_spreads;
    v_refused := v_s.idle_reasons;
    v_behind := array_fill(null::bigint, array[cardinality(v_shape_ids)]);
    v_nowhere := array_fill(v_never, array[cardinality(v_shape_ids)]);
    v_full := array_fill(-1, array[cardinality(v_shape_ids)]);
    v_dead := array_fill(v_unlimited, array[cardinality(v_shape_ids)]);  v_dead_wish := v_dead;
    v_switches := case when v_block is not null then v_s.switches else array_fill(null::integer, array[cardinality(v_shape_ids)]) end;
    for s in 1..cardinality(v_shape_ids) loop
        if v_refused[s] is not null then
            v_dead[s] := -1;  v_full[s] := 1;
        end if;
    end loop;
    v_depths := case when p_depth is null then v_c.depths else array_fill(p_depth, array[classes]) end;
    -- A class's shape, and the order for backfill that the shape's first partition uses.
    select array_agg(array_position(v_shape_ids, u.id) order by u.o), array_agg(u.backfill <> 'order' order by u.o)
      into v_c_shape, v_c_defers
      from unnest(v_c.shape_ids, v_c.backfills) with ordinality as u (id, backfill, o);
    v_depth := array_fill(0, array[cardinality(v_shape_ids)]);
    for cl in 1..classes loop
        v_depth[v_c_shape[cl]] := v_depths[cl];
    end loop;
    v_c_limit := v_c.limits_s;
    v_without := p_without;
    if v_c.claim_jobs is not null then
        v_without := coalesce(p_without, '{}') || v_c.claim_jobs;
        for s in 1..cardinality(v_shape_ids) loop
            if v_shape_ids[s] < -1000000 then
                v_depth[s] := 1000000;
            end if;
        end loop;
    end if;
    if exists (select from qos as o where o.preempts <> '{}') then
        select array_agg(u.shape > -1000000 and exists (select from qos as o where o.id = u.qos and o.preempts <> '{}') order by u.o)
          into v_c_preempts from unnest(v_c.shape_ids, v_c.qos_ids) with ordinality as u (shape, qos, o);
        for cl in 1..classes loop
            v_c_preempts[cl] := v_c_preempts[cl] and v_refused[v_c_shape[cl]] is null;
        end loop;
    else
        v_c_preempts := array_fill(false, array[classes]);
    end if;
    v_c_done := array_fill(false, array[classes]);  v_c_later := v_c_done;
    v_c_last := array_fill(0, array[classes]);  v_c_reason := array_fill(null::text, array[classes]);
    v_after_ats := array_fill('-infinity'::timestamptz, array[classes]);
    v_after_ids := array_fill(0::bigint, array[classes]);
    v_cap := v_c_last;
    v_room := array_fill(0, array[cardinality(v_shape_ids)]);
    v_reads := array_fill(8, array[classes]);
    v_chunks := array_fill(coalesce(cardinality(p_only) + 1, p_chunk, greatest(1, least(16, 300 / classes)))
                           + (v_without is not null)::integer, array[classes]);

    select * into v_try from _hang_nodes(v_group, v_gpus, v_cpus, v_jobs, v_group_gpus, v_group_cpus);
    v_first := v_try.first;  v_next := v_try.next;  v_prev := v_try.prev;  v_max_level := v_try.max_level;  v_whole := v_try.whole;
    v_free_gpus := v_try.free_gpus;  v_free_cpus := v_try.free_cpus;  v_free_nodes := v_try.idle;
    v_filled := v_try.filled;  v_words := (cardinality(v_whole) + 59) / 60;
    v_alt_words := _group_words(v_from, v_mid, v_to, v_alt_group, v_words);
    v_picked := array_fill(0, array[cardinality(v_next)]);  v_kept_by := v_picked;
    v_claims := array_fill(0, array[cardinality(v_whole)]);
    v_claimer := array_fill(null::bigint, array[cardinality(v_whole)]);
    select * into v_try from _booking_points(p_now, v_node_ids);
    v_pt_first := v_try.first;  v_points := coalesce(cardinality(v_try.heads), 0);
    if v_points > 0 then
        v_pt_node := v_try.nodes;  v_pt_head := v_try.heads;  v_pt_at := v_try.ats;  v_pt_end := v_try.untils;  v_pt_next := v_try.next;
        v_pt_pin := array_fill(true, array[v_points]);
        v_pt_gpus := array_fill(0, array[v_points]);  v_pt_cpus := v_pt_gpus;  v_pt_mem := v_pt_gpus;
    end if;
    v_hp_from[1] := v_points + 1;  v_st_from[1] := 1;

    <<slices>>
    loop
        -- The free amounts per group limit how many jobs of a class can be needed.
        for s in 1..cardinality(v_shape_ids) loop
            f := 0;
            if v_dead[s] >= 0 then
                for e in v_from[v_alt_from[s]]..v_to[v_alt_to[s]] loop
                    gr := v_alt_group[e];
                    f := f + case when v_exclusive[s] then v_free_nodes[gr]
                                  when v_need_gpus[s] > 0 then v_free_gpus[gr] / v_need_gpus[s]
                                  else v_free_cpus[gr] / v_need_cpus[s] end;
                end loop;
                f := f / v_count[s];
            end if;
            v_room[s] := least(f + 1, 1000000);
        end loop;
        v_any := false;
        for cl in 1..classes loop
            s := v_c_shape[cl];
            if v_c_done[cl] or v_c_later[cl] <> v_backfill
               or (v_full[s] = 1 and v_dead[s] < v_c_limit[cl] and not v_c_preempts[cl]) then
                v_cap[cl] := 0;
            else
                v_cap[cl] := case when v_c_limit[cl] <= v_dead[s] then v_room[s] else 1 end
                             + case when v_full[s] = 1 then 0 else v_depth[s] end + (v_without is not null)::integer
                             + case when v_c_preempts[cl] then v_max_preempt else 0 end;
                v_any := true;
            end if;
        end loop;
        if v_any then
            select * into v_q from _plan_slice(
                p_now, v_backfill, v_chunks, v_without, v_cap, v_after_ats, v_after_ids, v_c.head_ats, v_c.head_ids, v_c.head_counts,
                v_c.shape_ids, v_c.limits_s, v_c.uids, v_c.accounts, v_c.qos_ids, v_c.nices, v_c.tiers, v_c.orderings, v_depths,
                v_c.max_waits_s, v_c.backfills, v_c.sizes, v_c.fairs, v_c.statics, v_c.age_weight, v_c.max_age_s, p_only);
            if p_digest then
                v_queue_digest := hash_record_extended(v_q, coalesce(v_queue_digest, 0));
            end if;
            v_any := v_q.job_ids is not null;
        end if;
        if not v_any then
            exit slices when v_backfill or not true = any (v_c_later);
            v_backfill := true;
            continue;
        end if;
        v_job_ids := v_q.job_ids;  v_classes := v_q.classes;  v_counts := v_q.counts;  v_ats := v_q.queued_ats;
        v_leads := v_q.leads;  v_scores := v_q.scores;  v_lasts := v_q.lasts;
        v_rows := cardinality(v_job_ids);  v_sliced := v_rows;  v_row := 1;  v_runs := 0;  v_queue := '{}';  i := 0;

        <<jobs>>
        loop
            if i > 0 and v_lasts[i] then
                -- Read more rows of this class, unless it is finished: a run of rows beside the slice.
                cl := v_classes[i];  s := v_c_shape[cl];
                if not v_c_done[cl] and v_c_later[cl] = v_backfill and (v_c_limit[cl] <= v_dead[s] or v_full[s] <= 0 or v_c_preempts[cl]) then
                    select * into v_m from _plan_more(
                        p_now, v_backfill, coalesce(p_chunk, v_reads[cl]), v_without, v_ats[i], v_job_ids[i],
                        v_c.shape_ids[cl], v_c.limits_s[cl], v_c.uids[cl], v_c.accounts[cl], v_c.qos_ids[cl],
                        v_c.nices[cl], v_c.tiers[cl], v_c.orderings[cl], v_depths[cl], v_c.max_waits_s[cl],
                        v_c.backfills[cl], v_c.sizes[cl], v_c.fairs[cl], v_c.statics[cl], v_c.age_weight, v_c.max_age_s);
                    if p_digest then
                        v_queue_digest := hash_record_extended(v_m, coalesce(v_queue_digest, 0));
                    end if;
                    if v_m.job_ids is not null then
                        v_reads[cl] := 32;
                        v_runs := v_runs + 1;  v_run_at[v_runs] := v_rows + 1;
                        for j in 1..cardinality(v_m.job_ids) loop
                            v_rows := v_rows + 1;
                            v_job_ids[v_rows] := v_m.job_ids[j];  v_counts[v_rows] := v_m.counts[j];
                            v_ats[v_rows] := v_m.queued_ats[j];  v_leads[v_rows] := v_m.leads[j];
                            v_scores[v_rows] := v_m.scores[j];  v_classes[v_rows] := cl;  v_lasts[v_rows] := false;
                        end loop;
                        v_run_end[v_runs] := v_rows;  v_lasts[v_rows] := true;
                        v_queue := _queue_run(v_queue, v_runs, v_run_at, v_leads, v_scores, v_ats, v_job_ids);
                    end if;
                end if;
            end if;
            -- The next row: from the slice, or from a run whose next row goes before it.
            i := case when v_row <= v_sliced then v_row else 0 end;  r := 0;
            if v_queue <> '{}' then
                q := v_run_at[v_queue[1]];
                if i = 0 or _goes_before(v_leads[q], v_scores[q], v_ats[q], v_job_ids[q],
                                         v_leads[i], v_scores[i], v_ats[i], v_job_ids[i]) then
                    i := q;  r := v_queue[1];
                end if;
            end if;
            exit jobs when i = 0;
            if r = 0 then
                v_row := v_row + 1;
            else
                v_run_at[r] := i + 1;  v_queue := v_queue[2:];
                if i < v_run_end[r] then
                    v_queue := _queue_run(v_queue, r, v_run_at, v_leads, v_scores, v_ats, v_job_ids);
                end if;
            end if;
            cl := v_classes[i];  s := v_c_shape[cl];  v_tl := v_c_limit[cl];
            if v_tl > v_dead[s] and v_full[s] = 1 and not v_c_preempts[cl] then
                v_c_last[cl] := i;
                if r > 0 then
                    v_queue := array_remove(v_queue, r);
                end if;
                continue;
            end if;
            continue when v_c_done[cl] or v_c_later[cl] <> v_backfill;
            if v_full[s] <= 0 and v_full[s] <> -v_heads - 2 then
                -- Has any of its groups reached its maximum number of claims since the last check?
                v_full[s] := -v_heads - 2;
                for e in v_from[v_alt_from[s]]..v_to[v_alt_to[s]] loop
                    if v_claims[v_alt_group[e]] >= v_depth[s] then
                        v_full[s] := 1;
                        v_behind[s] := coalesce(v_behind[s], v_claimer[v_alt_group[e]]);
                        exit;
                    end if;
                end loop;
            end if;
            if v_full[s] = 1 and v_c_defers[cl] and not v_backfill then
                v_c_later[cl] := true;
                continue;
            end if;
            v_c_last[cl] := i;
            if v_l.use_from is not null then
                for j in v_l.use_from[cl]..v_l.use_to[cl] loop
                    if v_left[v_l.use_bucket[j]] < v_l.use_need[j] then
                        v_c_done[cl] := true;  v_c_reason[cl] := v_l.reasons[v_l.use_bucket[j]];
                        exit;
                    end if;
                end loop;
                continue when v_c_done[cl];
            end if;
            looked := looked + 1;
            v_claimed := v_shape_ids[s] < -1000000;
            k := v_count[s];  g := v_need_gpus[s];  c := v_need_cpus[s];  m := v_need_mem[s];  v_excl := v_exclusive[s];
            v_len := case when v_tl = v_unlimited then v_never / 2 else v_tl::bigint * 1000000 end;
            if v_listed[s] and v_allow_shape <> s then
                v_allow := _allow_nodes(
                    v_node_ids, v_shape_ids[s], p_what_if,
                    case when v_claimed then v_c.claim_nodes[-1000000 - v_shape_ids[s]] end);
                v_allow_shape := s;
            end if;
            v_tasks := v_counts[i];
            v_wish := v_switches[s];  v_lapse := null;
            if v_wish is not null and v_s.switches_waits_s[s] is not null then
                v_lapse := (v_s.switches_waits_s[s] + extract(epoch from v_ats[i] - p_now)) * 1000000;
                if v_lapse <= 0 then
                    v_wish := null;
                end if;
            end if;

            <<tasks>>
            while v_tasks > 0 and v_tl <= v_dead[s] and (v_wish is null or v_tl <= v_dead_wish[s]) loop
                v_got := 0;  v_fail := -1;  v_some := false;  v_task := v_task + 1;
                v_most := v_max[s];  v_kept := 0;
                if v_most > k and v_l.use_from is not null then
                    for j in v_l.use_from[cl]..v_l.use_to[cl] loop
                        if v_l.use_more[j] > 0 then
                            v_most := least(v_most, k + (v_left[v_l.use_bucket[j]] - v_l.use_need[j]) / v_l.use_more[j]);
                        end if;
                    end loop;
                end if;
                <<alternatives>>
                for a in v_alt_from[s]..v_alt_to[s] loop
                    exit when v_kept > 0 and v_alt_part[a] <> v_part;
                    v_part := v_alt_part[a];
                    v_whole_nodes := v_most > 1 and (v_excl or g > 0 and g = v_group_gpus[v_alt_group[v_to[a]]]);
                    v_gather := v_block is not null and v_most > 1 and (v_wish is not null or v_whole_nodes);
                    v_dom := 0;  v_tried := '{}';
                    <<domains>>
                    loop
                        if v_most > 1 then
                            v_dom := _choose_domain(v_alt_group[v_from[a]:v_to[a]], v_tried, v_excl, g, k, v_most,
                                                    v_domain, v_group_gpus, v_whole);
                            exit domains when v_dom < 0;
                            v_tried := v_tried || v_dom;
                        end if;

                        -- All nodes are collected if _choose_blocks will choose from them.
                        v_want := case when v_gather then 1000000 else v_most end;
                        v_got := 0;  v_search := v_search + 1;
                        <<search>>
                        for v_seg in 1..2 loop
                            -- Groups without GPUs, then those with; a job with GPUs uses none of the first.
                            continue when case when v_seg = 1 then v_from[a] > v_mid[a] else v_mid[a] >= v_to[a] end;
                            for lo in g..v_max_level loop
                                lv := case when v_alt_spread[a] then v_max_level + g - lo else lo end;
                                -- Its groups that have nodes at this level, one word of 60 after the other.
                                e := 0;  v_some_groups := 0;
                                loop
                                    while v_some_groups = 0 and e < v_words loop
                                        e := e + 1;
                                        v_some_groups := v_filled[lv * v_words + e]
                                                         & v_alt_words[(2 * a + v_seg - 3) * v_words + e];
                                    end loop;
                                    exit when v_some_groups = 0;
                                    v_bit := v_some_groups & (-v_some_groups);
                                    v_some_groups := v_some_groups - v_bit;
                                    gr := (e - 1) * 60 + v_place_of_bit[v_bit % 67 + 1];
                                    x := v_first[(gr - 1) * 64 + lv + 1];
                                    continue when v_dom > 0 and v_domain[gr] <> v_dom;
                                    continue when v_dom = 0 and v_most > 1 and v_domain[gr] > 0
                                              and (v_excl or g = v_group_gpus[gr]);
                                    <<nodes>>
                                    while x > 0 loop
                                        if v_gpus[x] >= g and v_cpus[x] >= c and v_mem[x] >= m
                                           and (not v_excl or v_jobs[x] = 0)
                                           and (not v_listed[s] or v_allow[x]) then
                                            -- Does it avoid every point that it would run into?
                                            v_at := v_never;  v_ok := v_booking[s] is null;
                                            p := v_pt_first[x];
                                            while p > 0 loop
                                                h := v_pt_head[p];
                                                if h = -v_booking[s] then
                                                    if v_pt_at[p] = 0 then
                                                        v_ok := true;
                                                        if v_pt_end[p] < v_len then
                                                            v_at := least(v_at, v_pt_end[p]);
                                                        end if;
                                                    end if;
                                                elsif v_pt_at[p] < v_len and h < 0 then
                                                    v_at := least(v_at, v_pt_at[p]);
                                                elsif v_pt_at[p] < v_len and v_pt_pin[p]
                                                      and (v_excl or v_pt_gpus[p] < g or v_pt_cpus[p] < c or v_pt_mem[p] < m) then
                                                    -- The pin may move to a spare node. A search tries each only once.
                                                    if v_hp_search[h] < v_search then
                                                        v_hp_search[h] := v_search;  v_hp_tried[h] := v_hp_next[h];
                                                        v_hp_spent[h] := true;
                                                    end if;
                                                    v_moved := false;  z := v_hp_tried[h];
                                                    while not v_moved and z < v_hp_from[h + 1] loop
                                                        q := z;  z := z + 1;  y := v_pt_node[q];
                                                        v_tg := v_h_gpus[h];  v_tc := v_h_cpus[h];  v_tm := v_h_mem[h];
                                                        if v_tg < 0 then
                                                            gr := v_group[y];  v_tg := v_group_gpus[gr];
                                                            v_tc := v_group_cpus[gr];  v_tm := v_group_mems[gr];
                                                        end if;
                                                        v_moved := not v_pt_pin[q] and v_pt_gpus[q] >= v_tg
                                                                   and v_pt_cpus[q] >= v_tc and v_pt_mem[q] >= v_tm;
                                                        w := v_pt_first[y];
                                                        while v_moved and w > 0 loop
                                                            v_moved := v_pt_at[w] < v_pt_at[q] or v_pt_at[w] >= v_pt_end[q]
                                                                       or not v_pt_pin[w]
                                                                       or (v_pt_head[w] > 0 and v_pt_gpus[w] >= v_tg
                                                                           and v_pt_cpus[w] >= v_tc and v_pt_mem[w] >= v_tm);
                                                            w := v_pt_next[w];
                                                        end loop;
                                                        -- This job is about to take the node; if it does not, the node is spare again.
                                                        if v_moved and (v_picked[y] = v_search or v_kept_by[y] = v_task) then
                                                            v_moved := false;  v_hp_spent[h] := false;
                                                        end if;
                                                        if v_moved then
                                                            v_pt_pin[q] := true;  v_pt_pin[p] := false;
                                                            -- Return the amounts on x, take them on y, at every point within.
                                                            w := v_pt_first[y];
                                                            while w > 0 loop
                                                                if v_pt_at[w] >= v_pt_at[q] and v_pt_at[w] < v_pt_end[q] then
                                                                    v_pt_gpus[w] := v_pt_gpus[w] - v_tg;
                                                                    v_pt_cpus[w] := v_pt_cpus[w] - v_tc;
                                                                    v_pt_mem[w] := v_pt_mem[w] - v_tm;
                                                                end if;
                                                                w := v_pt_next[w];
                                                            end loop;
                                                            if v_h_gpus[h] < 0 then
                                                                gr := v_group[x];  v_tg := v_group_gpus[gr];
                                                                v_tc := v_group_cpus[gr];  v_tm := v_group_mems[gr];
                                                            end if;
                                                            w := v_pt_first[x];
                                                            while w > 0 loop
                                                                if v_pt_at[w] >= v_pt_at[p] and v_pt_at[w] < v_pt_end[p] then
                                                                    v_pt_gpus[w] := v_pt_gpus[w] + v_tg;
                                                                    v_pt_cpus[w] := v_pt_cpus[w] + v_tc;
                                                                    v_pt_mem[w] := v_pt_mem[w] + v_tm;
                                                                end if;
                                                                w := v_pt_next[w];
                                                            end loop;
                                                        end if;
                                                        if v_hp_spent[h] then
                                                            v_hp_next[h] := z;
                                                        end if;
                                                    end loop;
                                                    v_hp_tried[h] := z;
                                                    gr := v_group[x];
                                                    if not v_moved then
                                                        v_at := least(v_at, v_pt_at[p]);
                                                    end if;
                                                end if;
                                                p := v_pt_next[p];
                                            end loop;
                                            if not v_ok then
                                                null;
                                            elsif v_at = v_never then
                                                v_got := v_got + 1;  v_pick[v_got] := x;  v_picked[x] := v_search;
                                                exit search when v_got = v_want;
                                            else
                                                v_fail := greatest(v_fail, v_at);
                                            end if;
                                        end if;
                                        x := v_next[x];
                                    end loop nodes;
                                end loop;
                            end loop;
                        end loop search;
                        v_some := v_some or v_got > 0;
                        if v_gather and v_got >= k then
                            v_pick := _choose_blocks(v_pick[:v_got], v_block, v_most, v_wish);
                            v_got := cardinality(v_pick);
                        end if;
                        exit alternatives when v_got >= v_most;
                        if v_got >= k and v_got > v_kept then
                            v_kept := v_got;  v_keep := v_pick[:v_got];
                            foreach x in array v_keep loop
                                v_kept_by[x] := v_task;
                            end loop;
                        end if;
                        exit domains when v_most = 1;
                    end loop domains;
                end loop alternatives;
                if v_kept > 0 and v_got < v_most then
                    v_got := v_kept;  v_pick := v_keep;
                end if;
                if v_got < k then
                    -- If only a point was in the way, shorter jobs of the shape may still start.
                    j := case when v_some then v_tl - 1 else least(v_tl - 1, v_fail / 1000000)::integer end;
                    if v_wish is null then
                        v_dead[s] := j;
                    else
                        v_dead_wish[s] := j;
                    end if;
                    exit tasks;
                end if;

                v_starts := v_starts + 1;
                start_jobs[v_starts] := v_job_ids[i];  start_partitions[v_starts] := v_part;
                start_nodes[v_starts] := v_got;  start_limits_s[v_starts] := v_tl;
                for j in 1..v_got loop
                    x := v_pick[j];  gr := v_group[x];
                    v_tg := g;  v_tc := c;  v_tm := m;
                    if v_excl then
                        v_tg := v_gpus[x];  v_tc := v_cpus[x];  v_tm := v_mem[x];
                    end if;
                    b := v_mask[x];
                    if v_tg < v_gpus[x] then
                        f := b;  b := 0;
                        for y in 1..v_tg loop
                            v_bit := f & (-f);  b := b | v_bit;  f := f - v_bit;
                        end loop;
                    end if;
                    lv := case when v_group_gpus[gr] > 0 then v_gpus[x]
                               else (8 * v_cpus[x] + v_group_cpus[gr] - 1) / v_group_cpus[gr] end;
                    p := v_prev[x];  q := v_next[x];
                    if p > 0 then
                        v_next[p] := q;
                    else
                        v_first[(gr - 1) * 64 + lv + 1] := q;
                        if q = 0 then
                            y := lv * v_words + (gr + 59) / 60;
                            v_filled[y] := v_filled[y] - (1::bigint << ((gr - 1) % 60));
                        end if;
                    end if;
                    if q > 0 then
                        v_prev[q] := p;
                    end if;
                    if v_tg > 0 and v_gpus[x] = v_group_gpus[gr] then
                        v_whole[gr] := v_whole[gr] - 1;
                    end if;
                    if v_jobs[x] = 0 then
                        v_free_nodes[gr] := v_free_nodes[gr] - 1;
                    end if;
                    v_free_gpus[gr] := v_free_gpus[gr] - v_tg;  v_free_cpus[gr] := v_free_cpus[gr] - v_tc;
                    v_mask[x] := v_mask[x] - b;  v_gpus[x] := v_gpus[x] - v_tg;
                    v_cpus[x] := v_cpus[x] - v_tc;  v_mem[x] := v_mem[x] - v_tm;  v_jobs[x] := v_jobs[x] + 1;
                    lv := case when v_group_gpus[gr] > 0 then v_gpus[x]
                               else (8 * v_cpus[x] + v_group_cpus[gr] - 1) / v_group_cpus[gr] end;
                    y := (gr - 1) * 64 + lv + 1;
                    q := v_first[y];
                    v_prev[x] := 0;  v_next[x] := q;  v_first[y] := x;
                    if q > 0 then
                        v_prev[q] := x;
                    else
                        y := lv * v_words + (gr + 59) / 60;
                        v_filled[y] := v_filled[y] | (1::bigint << ((gr - 1) % 60));
                    end if;
                    p := v_pt_first[x];
                    while p > 0 loop
                        if v_pt_at[p] < v_len then
                            v_pt_gpus[p] := v_pt_gpus[p] - v_tg;  v_pt_cpus[p] := v_pt_cpus[p] - v_tc;
                            v_pt_mem[p] := v_pt_mem[p] - v_tm;
                        end if;
                        p := v_pt_next[p];
                    end loop;
                    v_allocs := v_allocs + 1;
                    v_pos[v_allocs] := x;
                    alloc_nodes[v_allocs] := v_node_ids[x];  alloc_masks[v_allocs] := b;
                    alloc_gpus[v_allocs] := v_tg;  alloc_cpus[v_allocs] := v_tc;  alloc_mems[v_allocs] := v_tm;
                end loop;
                v_st_from[v_starts + 1] := v_allocs + 1;
                if v_starts >= p_start_limit then
                    more := true;
                    exit slices;
                end if;
                v_tasks := v_tasks - 1;
                if v_l.use_from is not null then
                    for j in v_l.use_from[cl]..v_l.use_to[cl] loop
                        p := v_l.use_bucket[j];
                        if v_l.consumes[p] then
                            v_left[p] := v_left[p] - v_l.use_need[j] - (v_got - k) * v_l.use_more[j];
                        end if;
                        if v_left[p] < v_l.use_need[j] then
                            v_c_done[cl] := true;  v_c_reason[cl] := v_l.reasons[p];
                        end if;
                    end loop;
                    exit tasks when v_c_done[cl];
                end if;
            end loop tasks;
            continue when v_tasks = 0 or v_c_done[cl];

            -- It does not fit.
            if not v_c_preempts[cl] or v_tries >= v_max_preempt then
                if v_full[s] = 1 then
                    v_refused[s] := coalesce(v_refused[s], case when v_behind[s] is null then 'Resources' else 'Priority' end);
                    continue;
                end if;
                if v_len >= v_nowhere[s] or v_depth[s] = 0 then
                    v_refused[s] := coalesce(v_refused[s], 'Resources');
                    continue;
                end if;
            end if;
            -- Protect it: find its planned start.
            if v_released then
                v_released := v_r.complete_to is null or not v_c_preempts[cl] and (k <= v_few or v_first_ends > 300);
            end if;
            if not v_released then
                v_first_ends := case when v_c_preempts[cl] then null when k <= v_few then 300 else 6000 end;
                select * into v_r from _plan_releases(p_now, v_node_ids, p_without, null, null, v_first_ends);
                if p_digest then
                    v_released_digest := hash_record_extended(v_r, coalesce(v_released_digest, 0));
                end if;
                v_released := true;
            end if;
            if v_ev_starts < v_starts then
                select c.ats, c.refs into v_ev_at, v_ev_ref
                  from (select array_agg(l.limit_s::bigint * 1000000) as ats, array_agg(1000000 + l.ord::integer) as refs
                          from unnest(start_limits_s) with ordinality as l (limit_s, ord)
                         where l.ord > v_ev_starts and l.limit_s < v_unlimited) as l
                 cross join lateral _merge_changes(v_ev_at, v_ev_ref, l.ats, l.refs) as c;
                v_ev_starts := v_starts;
            end if;
            v_h := null;  v_at := null;  v_told := null;
            if v_claimed then
                v_told := extract(epoch from v_c.claim_ats[-1000000 - v_shape_ids[s]] - p_now) * 1000000;
            end if;
            loop
                v_short := false;
                for a in v_alt_from[s]..v_alt_to[s] loop
                    select * into v_try
                      from _plan_protect(
                           v_alt_group[v_from[a]:v_to[a]], k > 1 and (v_excl or g = v_group_gpus[v_alt_group[v_to[a]]]),
                           v_block, v_wish, v_lapse,
                           v_group, v_gpus, v_cpus, v_mem, v_domain, v_group_gpus, v_group_cpus, v_group_mems,
                           v_first, v_next, v_max_level,
                           k, case when v_excl then -1 else g end, c, m, v_len,
                           case when v_listed[s] then v_allow end, v_booking[s],
                           v_r.ats, v_r.positions, v_r.gpus, v_r.cpus, v_r.mems, v_r.complete_to, v_ev_at, v_ev_ref,
                           v_st_from, v_pos, alloc_gpus, alloc_cpus, alloc_mems,
                           v_hp_from, v_h_gpus, v_h_cpus, v_h_mem,
                           v_pt_first, v_pt_next, v_pt_node, v_pt_head, v_pt_at, v_pt_end, v_pt_gpus, v_pt_cpus, v_pt_mem,
                           v_pt_pin, v_told);
                    v_short := v_short or v_try.short;
                    if v_at is null or v_try.at < v_at then
                        v_h := v_try;  v_at := v_try.at;
                    end if;
                end loop;
                exit when v_at is not null or not v_short;
                -- The walk needs more of them: read 20 times as many, in the end all.
                v_first_ends := 20 * v_first_ends;
                select * into v_r from _plan_releases(p_now, v_node_ids, p_without, null, null, v_first_ends);
            end loop;
            v_hit := false;
            if v_c_preempts[cl] and v_tries < v_max_preempt then
                -- Can it start earlier by ending other jobs?
                v_tries := v_tries + 1;
                select * into v_v
                  from _plan_preempt(
                       p_now, v_job_ids[i], v_c.qos_ids[cl], coalesce(p_without, '{}') || victim_jobs, v_at,
                       v_node_ids, v_group, v_gpus, v_cpus, v_mem, v_domain, v_group_gpus, v_group_cpus, v_group_mems,
                       v_from[v_alt_from[s]:v_alt_to[s]], v_to[v_alt_from[s]:v_alt_to[s]], v_alt_group, v_block, v_wish,
                       k, case when v_excl then -1 else g end, c, m, v_len,
                       case when v_listed[s] then v_allow end, v_booking[s],
                       v_r.ats, v_r.positions, v_r.gpus, v_r.cpus, v_r.mems, v_ev_at, v_ev_ref,
                       v_st_from, v_pos, alloc_gpus, alloc_cpus, alloc_mems,
                       v_hp_from, v_h_gpus, v_h_cpus, v_h_mem,
                       v_pt_first, v_pt_next, v_pt_node, v_pt_head, v_pt_at, v_pt_end, v_pt_gpus, v_pt_cpus, v_pt_mem,
                       v_pt_pin);
                v_hit := v_v.victims is not null;
                v_c_preempts[cl] := v_hit;
                if v_hit then
                    victim_jobs := victim_jobs || v_v.victims;  victim_costs := victim_costs || v_v.costs;
                    victim_for := victim_for || array_fill(v_job_ids[i], array[cardinality(v_v.victims)]);
                    v_going_at := v_going_at || v_v.ends;
                    select * into v_r from _plan_releases(p_now, v_node_ids, p_without, victim_jobs, v_going_at, null);
                    -- Protected jobs that start after the victims' grace find more free there.
                    for v_try in
                        select n.ord::integer as x, a.gpus, a.cpus, a.mem_mib as mem, u.at as at,
                               (case when a.ends_at < 'infinity' then extract(epoch from a.ends_at - p_now) * 1000000
                                     else v_never end)::bigint as until
                          from unnest(v_v.victims, v_v.ends) as u (job_id, at)
                          join allocation as a on a.job_id = u.job_id
                          join unnest(v_node_ids) with ordinality as n (id, ord) on n.id = a.node_id
                    loop
                        p := v_pt_first[v_try.x];
                        while p > 0 loop
                            if v_pt_head[p] > 0 and v_pt_at[p] >= v_try.at and v_pt_at[p] < v_try.until then
                                v_pt_gpus[p] := v_pt_gpus[p] + v_try.gpus;  v_pt_cpus[p] := v_pt_cpus[p] + v_try.cpus;
                                v_pt_mem[p] := v_pt_mem[p] + v_try.mem;
                            end if;
                            p := v_pt_next[p];
                        end loop;
                    end loop;
                    v_at := v_v.at;
                    v_h.fit := v_v.fit;  v_h.then_gpus := v_v.then_gpus;  v_h.then_cpus := v_v.then_cpus;
                    v_h.then_mems := v_v.then_mems;
                elsif v_full[s] = 1 or v_depth[s] = 0 then
                    v_refused[s] := coalesce(v_refused[s], case when v_behind[s] is null then 'Resources' else 'Priority' end);
                    continue;
                end if;
            end if;
            j := coalesce(cardinality(head_jobs), 0) + 1;
            head_jobs[j] := v_job_ids[i];  head_shapes[j] := v_c.kept_shape_ids[cl];  head_fittings[j] := v_h.fitting;
            if v_at is null then
                -- Its nodes are down, or allocated without an end in sight: it blocks no other job.
                head_ats[j] := null;  head_nodes[j] := null;
                v_nowhere[s] := v_len;
                v_refused[s] := coalesce(v_refused[s], case when v_wish is null then 'ReqNodeNotAvail' else 'Resources' end);
                continue;
            end if;
            head_ats[j] := p_now + v_at * interval '1 microsecond';
            v_refused[s] := coalesce(v_refused[s], 'Resources');
            v_heads := v_heads + 1;
            v_end := v_at + v_len;
            v_h_at[v_heads] := v_at;
            v_h_gpus[v_heads] := case when v_excl then -1 else g end;
            v_h_cpus[v_heads] := c;  v_h_mem[v_heads] := m;
            v_hp_next[v_heads] := v_hp_from[v_heads];  v_hp_search[v_heads] := 0;
            if (v_hit or v_claimed) and v_l.use_from is not null then
                -- Jobs that start in the meantime must not use up the limits it needs.
                for j in v_l.use_from[cl]..v_l.use_to[cl] loop
                    p := v_l.use_bucket[j];
                    if v_l.consumes[p] then
                        v_left[p] := v_left[p] - v_l.use_need[j];
                    end if;
                end loop;
            end if;
            -- The nodes that became free last are pinned; the others are spare.
            w := cardinality(v_h.fit);
            for j in 1..w loop
                x := v_h.fit[j];  gr := v_group[x];
                v_points := v_points + 1;
                v_pt_node[v_points] := x;  v_pt_head[v_points] := v_heads;  v_pt_pin[v_points] := j > w - k;
                v_pt_at[v_points] := v_at;  v_pt_end[v_points] := v_end;
                v_pt_gpus[v_points] := v_h.then_gpus[j];  v_pt_cpus[v_points] := v_h.then_cpus[j];
                v_pt_mem[v_points] := v_h.then_mems[j];
                v_pt_next[v_points] := v_pt_first[x];  v_pt_first[x] := v_points;
                if j > w - k then
                    v_tg := g;  v_tc := c;  v_tm := m;
                    if v_excl then
                        v_tg := v_group_gpus[gr];  v_tc := v_group_cpus[gr];  v_tm := v_group_mems[gr];
                    end if;
                    p := v_points;
                    while p > 0 loop
                        if v_pt_at[p] >= v_at and v_pt_at[p] < v_end then
                            v_pt_gpus[p] := v_pt_gpus[p] - v_tg;  v_pt_cpus[p] := v_pt_cpus[p] - v_tc;
                            v_pt_mem[p] := v_pt_mem[p] - v_tm;
                        end if;
                        p := v_pt_next[p];
                    end loop;
                end if;
            end loop;
            v_hp_from[v_heads + 1] := v_points + 1;
            v_h_row[v_heads] := cardinality(head_jobs);
            if not v_hit and not v_claimed then
                for e in v_from[v_alt_from[s]]..v_to[v_alt_to[s]] loop
                    gr := v_alt_group[e];
                    v_claims[gr] := v_claims[gr] + 1;  v_claimer[gr] := coalesce(v_claimer[gr], v_job_ids[i]);
                end loop;
            end if;
            select c.ats, c.refs into v_ev_at, v_ev_ref
              from _merge_changes(v_ev_at, v_ev_ref, case when v_tl < v_unlimited then array[v_at, v_end] else array[v_at] end,
                                  case when v_tl < v_unlimited then array[v_heads, -v_heads] else array[v_heads] end) as c;
        end loop jobs;

        exit slices when v_backfill or not true = any (v_c_later);
        -- A second walk for the deferred classes, starting after the rows already considered.
        v_backfill := true;
        for cl in 1..classes loop
            if v_c_last[cl] > 0 then
                v_after_ats[cl] := v_ats[v_c_last[cl]];  v_after_ids[cl] := v_job_ids[v_c_last[cl]];
            end if;
        end loop;
    end loop slices;

    read_digest := read_digest || int8send(coalesce(v_queue_digest, 0)) || int8send(coalesce(v_released_digest, 0));
    -- Pins may have moved, so the nodes of each protected job are final only now.
    for h in 1..v_heads loop
        head_nodes[v_h_row[h]] := (
            select string_agg(v_node_ids[t.x]::text, ',' order by t.o)
              from unnest(v_pt_node[v_hp_from[h]:v_hp_from[h + 1] - 1], v_pt_pin[v_hp_from[h]:v_hp_from[h + 1] - 1])
                   with ordinality as t (x, pin, o)
             where t.pin);
    end loop;
    select array_agg(v_shape_ids[t.o] order by t.o), array_agg(t.reason order by t.o),
           array_agg(v_behind[t.o] order by t.o)
      into refused_shapes, refused_reasons, refused_heads
      from unnest(v_refused) with ordinality as t (reason, o)
     where t.reason is not null and v_shape_ids[t.o] > 0;
    if true = any (v_c_done) then
        select array_agg(u.shape order by u.o), array_agg(u.limit_s order by u.o), array_agg(u.uid order by u.o),
               array_agg(u.account order by u.o), array_agg(u.qos order by u.o), array_agg(u.reason order by u.o)
          into limited_shapes, limited_limits_s, limited_uids, limited_accounts, limited_qos, limited_reasons
          from unnest(v_c.shape_ids, v_c.limits_s, v_c.uids, v_c.accounts, v_c.qos_ids, v_c_reason) with ordinality
               as u (shape, limit_s, uid, account, qos, reason, o)
         where u.reason is not null and u.shape > -1000000;
    end if;
end;
$$;
