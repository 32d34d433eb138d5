-- odc.decide: which pending jobs start now and where, and when the first that cannot will start.
-- Reads and returns; writes nothing. Order comes from _plan_slice, protection from _plan_protect; this function
-- is the placement between them, on local int arrays (a node, a shape, a group is its position in them).
--
-- The queue is walked in order. A one-node job takes the fullest node that fits: nodes hang in lists by group and
-- level, their free GPUs (eighths of the CPUs where there are none). A gang takes distinct nodes of one partition,
-- and of one EFA domain when it takes whole nodes of an EFA type. The first job that does not fit and whose groups
-- no protected job claims becomes protected: it claims its groups and gets a planned start. Behind it a job may
-- start on a claimed node if it ends before that start, or if enough nodes still fit the protected job then.
-- A job refused makes every longer job of its shape hopeless (dead), so a walk looks at few of them; whenever a
-- job becomes protected, the walk goes on with a slice that knows the new planned start.
--
-- Arguments  p_now          the pass's time
--            p_what_if      hypothetical jobs, behind all others: array of {partition_ids, node_count,
--                           gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, exclusive, constraint_expr,
--                           node_list, exclude_nodes, time_limit_s}; their job ids are -1, -2, …
--            p_start_limit  at most this many starts; `more` says that it cut the plan short
--            p_chunk        how many jobs of a shape are read at once; the plan does not depend on it
-- Returns    one row. Starts: job (an array's row once per task), partition, number of nodes, shape, time limit.
--            Their allocations, one after the other: node id, GPU mask, GPUs, CPUs, MiB.
--            Protected jobs: id, planned start (null: not in sight), node ids, nodes that fit now, shape.
--            Refusals: shape, Slurm's reason, the protected job they wait behind. looked: jobs looked at.
create or replace function odc.decide(
    p_now timestamptz, p_what_if jsonb default null, p_start_limit integer default 2000,
    p_chunk integer default 100,
    out looked integer, out more boolean,
    out start_jobs bigint[], out start_partitions integer[], out start_nodes integer[],
    out start_limits_s integer[],
    out alloc_nodes integer[], out alloc_masks bigint[], out alloc_gpus integer[], out alloc_cpus integer[],
    out alloc_mems integer[],
    out head_jobs bigint[], out head_ats timestamptz[], out head_nodes text[], out head_fittings integer[],
    out head_shapes integer[],
    out refused_shapes integer[], out refused_reasons text[], out refused_heads bigint[])
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_unlimited constant integer := 2147483647;
    v_n record;                 -- _plan_nodes
    v_s record;                 -- _plan_shapes
    v_q record;                 -- _plan_slice
    v_h record;                 -- _plan_protect
    -- nodes
    v_node_ids integer[];  v_group integer[];  v_mask bigint[];  v_gpus integer[];  v_cpus integer[];
    v_mem integer[];       v_jobs integer[];   v_next integer[];
    v_first integer[];          -- first node of a list: (group - 1) * 64 + level + 1
    v_whole integer[];          -- nodes of a group with all its GPUs free
    v_group_gpus integer[];  v_group_cpus integer[];  v_group_mems integer[];  v_domain integer[];
    v_claim integer[];          -- per group: the number of the protected job that claims it
    -- nodes under a protected job
    v_fits boolean[];  v_then_gpus integer[];  v_then_cpus integer[];  v_then_mem integer[];
    -- protected jobs
    v_heads integer := 0;  v_head_wait_s integer[];  v_head_slack integer[];  v_taken integer[];
    v_head_gpus integer[];  v_head_cpus integer[];  v_head_mem integer[];
    -- shapes
    v_shape_ids integer[];  v_count integer[];  v_need_gpus integer[];  v_need_cpus integer[];  v_need_mem integer[];
    v_alt_from integer[];   v_alt_to integer[];  v_from integer[];  v_mid integer[];  v_to integer[];  v_alt_group integer[];
    v_alt_part integer[];   v_alt_list integer[];  -- where the lists of a flat group begin in v_first
    v_exclusive boolean[];  v_listed boolean[];
    v_dead integer[];           -- a job of the shape with this time limit or a longer one cannot start
    v_allow boolean[];          -- of the shape in v_allow_shape, per node: its lists let it
    v_allow_shape integer := 0;
    v_refused text[];  v_behind bigint[];
    -- the slice
    v_slice_shape integer[];  v_slice_id integer[];  v_low integer[];  v_high integer[];  v_cap integer[];
    v_free_gpus bigint[];  v_free_cpus bigint[];  v_free_nodes bigint[];
    v_nice integer := -2147483648;  v_queued_at timestamptz := '-infinity';  v_job_id bigint := 0;
    v_job_ids bigint[];  v_shapes integer[];  v_limits_s integer[];  v_counts integer[];
    v_rows integer;  v_done boolean := false;  v_restart boolean;
    v_tail integer := -1;       -- hypothetical jobs done; -1 while the queue is walked
    -- the job at hand
    s integer;  v_tl integer;  v_left integer;  k integer;  g integer;  c integer;  m integer;
    v_tg integer;  v_tc integer;  v_tm integer;  v_excl boolean;  v_claimed boolean;  v_guarded boolean;  v_take boolean;
    v_pick integer[] := '{}';  v_got integer;  v_part integer;  v_dom integer;  v_tried integer[];  v_best integer;  v_sum integer;
    -- small change
    a integer;  e integer;  x integer;  y integer;  h integer;  gr integer;  lv integer;  lo integer;
    i integer;  j integer;  v_seg integer;  v_seg_from integer;  v_seg_to integer;  v_max_level integer;
    b bigint;  f bigint;  v_bit bigint;  v_starts integer := 0;  v_allocs integer := 0;
    v_pos integer[];            -- node position of each allocation
    v_need boolean[];  v_doms integer[];  v_hi integer;
begin
    looked := 0;  more := false;
    select * into v_n from _plan_nodes();
    select * into v_s from _plan_shapes(v_n.group_ids, p_what_if);
    if v_s.ids is null then
        return;
    end if;
    v_node_ids := coalesce(v_n.node_ids, '{}');  v_group := v_n.groups;  v_mask := v_n.masks;  v_gpus := v_n.gpus;
    v_cpus := v_n.cpus;  v_mem := v_n.mems;  v_jobs := v_n.jobs;
    v_group_gpus := v_n.group_gpus;  v_group_cpus := v_n.group_cpus;  v_group_mems := v_n.group_mems;
    v_domain := v_n.group_domains;
    v_shape_ids := v_s.ids;  v_count := v_s.node_counts;  v_need_gpus := v_s.gpus;  v_need_cpus := v_s.cpus;
    v_need_mem := v_s.mems;  v_exclusive := v_s.exclusives;  v_listed := v_s.listed;
    v_alt_from := v_s.alt_from;  v_alt_to := v_s.alt_to;
    v_from := v_s.alt_group_from;  v_mid := v_s.alt_group_mid;  v_to := v_s.alt_group_to;
    v_alt_group := v_s.alt_groups;  v_alt_part := v_s.alt_partitions;
    select array_agg((t.gr - 1) * 64 + 1 order by t.o) into v_alt_list from unnest(v_alt_group) with ordinality as t (gr, o);
    v_dead := array_fill(v_unlimited, array[cardinality(v_shape_ids)]);
    v_refused := v_s.idle_reasons;
    v_behind := array_fill(null::bigint, array[cardinality(v_shape_ids)]);
    for s in 1..cardinality(v_shape_ids) loop
        if v_refused[s] is not null then
            v_dead[s] := -1;
        end if;
    end loop;
    v_first := array_fill(0, array[greatest(1, coalesce(cardinality(v_group_gpus), 0)) * 64]);
    v_whole := array_fill(0, array[greatest(1, coalesce(cardinality(v_group_gpus), 0))]);
    v_claim := v_whole;
    v_next := array_fill(0, array[greatest(1, cardinality(v_node_ids))]);
    for x in reverse cardinality(v_node_ids)..1 loop
        gr := v_group[x];
        if v_group_gpus[gr] > 0 then
            lv := v_gpus[x];
            if lv = v_group_gpus[gr] then
                v_whole[gr] := v_whole[gr] + 1;
            end if;
        else
            lv := (8 * v_cpus[x] + v_group_cpus[gr] - 1) / v_group_cpus[gr];
        end if;
        y := (gr - 1) * 64 + lv + 1;
        v_next[x] := v_first[y];  v_first[y] := x;
    end loop;
    select coalesce(max(greatest(t, 8)), 0) into v_max_level from unnest(v_group_gpus) as t;
    select array_agg(coalesce(z.gpus, 0) order by u.number), array_agg(coalesce(z.cpus, 0) order by u.number),
           array_agg(coalesce(z.idle, 0) order by u.number)
      into v_free_gpus, v_free_cpus, v_free_nodes
      from generate_series(1, coalesce(cardinality(v_group_gpus), 0)) as u (number)
      left join (select w.grp, sum(w.gpus) as gpus, sum(w.cpus) as cpus, count(*) filter (where w.jobs = 0) as idle
                   from unnest(v_group, v_gpus, v_cpus, v_jobs) as w (grp, gpus, cpus, jobs)
                  group by w.grp) as z on z.grp = u.number;

    while not v_done loop
        -- What is free per group bounds how many jobs of a shape a slice can need.
        v_slice_shape := '{}';  v_slice_id := '{}';  v_low := '{}';  v_high := '{}';  v_cap := '{}';
        for s in 1..cardinality(v_shape_ids) loop
            continue when v_dead[s] < 0 or v_shape_ids[s] < 0;
            f := 0;  v_tried := '{}';
            for a in v_alt_from[s]..v_alt_to[s] loop
                for e in v_from[a]..v_to[a] loop
                    gr := v_alt_group[e];
                    if v_exclusive[s] then
                        f := f + v_free_nodes[gr];
                    elsif v_need_gpus[s] > 0 then
                        f := f + v_free_gpus[gr] / v_need_gpus[s];
                    else
                        f := f + v_free_cpus[gr] / v_need_cpus[s];
                    end if;
                    if v_claim[gr] > 0 and v_head_wait_s[v_claim[gr]] < v_dead[s]
                       and not v_head_wait_s[v_claim[gr]] = any (v_tried) then
                        v_tried := v_tried || v_head_wait_s[v_claim[gr]];
                    end if;
                end loop;
            end loop;
            -- One slice per side of each planned start that matters to the shape.
            lo := -1;
            for v_hi in select t from unnest(v_tried || v_dead[s]) as t order by t loop
                v_slice_shape := v_slice_shape || s;  v_slice_id := v_slice_id || v_shape_ids[s];
                v_low := v_low || lo;  v_high := v_high || v_hi;
                v_cap := v_cap || least(f / v_count[s] + 1, 1000000)::integer;
                lo := v_hi;
            end loop;
        end loop;
        if v_tail < 0 then
            select * into v_q from _plan_slice(
                v_slice_shape, v_slice_id, v_low, v_high, v_cap, v_nice, v_queued_at, v_job_id, p_chunk);
            v_done := not v_q.cut;
        else
            -- The hypothetical jobs come behind the queue.
            select array_agg(-w.ord order by w.ord) as job_ids,
                   array_agg(array_position(v_shape_ids, -w.ord::integer) order by w.ord) as shapes,
                   array_agg((w.job ->> 'time_limit_s')::integer order by w.ord) as limits_s,
                   array_agg(1 order by w.ord) as counts,
                   array_agg(0 order by w.ord) as nices, array_agg(p_now order by w.ord) as queued_ats
              into v_q
              from jsonb_array_elements(p_what_if) with ordinality as w (job, ord)
             where w.ord > v_tail;
            v_done := true;
        end if;
        v_job_ids := coalesce(v_q.job_ids, '{}');  v_shapes := v_q.shapes;  v_limits_s := v_q.limits_s;
        v_counts := v_q.counts;
        v_rows := cardinality(v_job_ids);
        v_restart := false;

        for i in 1..v_rows loop
            s := v_shapes[i];  v_tl := v_limits_s[i];
            continue when v_tl > v_dead[s] or v_dead[s] < 0;
            looked := looked + 1;
            v_left := v_counts[i];
            k := v_count[s];  g := v_need_gpus[s];  c := v_need_cpus[s];  m := v_need_mem[s];  v_excl := v_exclusive[s];
            if v_listed[s] and v_allow_shape <> s then
                select array_agg(coalesce(n.name = any (d.node_list), true)
                                 and not coalesce(n.name = any (d.exclude_nodes), false) order by u.ord)
                  into v_allow
                  from unnest(v_node_ids) with ordinality as u (id, ord)
                  join node as n on n.id = u.id
                 cross join shape as d
                 where d.id = v_shape_ids[s];
                v_allow_shape := s;
            end if;

            while v_left > 0 loop
                v_got := 0;  v_guarded := false;
                <<alternatives>>
                for a in v_alt_from[s]..v_alt_to[s] loop
                    v_part := v_alt_part[a];
                    v_dom := 0;
                    if k > 1 then
                        v_tried := '{}';
                    end if;
                    <<domains>>
                    loop
                        -- A gang of whole nodes of EFA types: the domain with the fewest whole nodes that are enough.
                        if k > 1 then
                            v_best := -1;  v_sum := 2147483647;
                            for e in v_from[a]..v_to[a] loop
                                gr := v_alt_group[e];
                                y := case when v_excl or g = v_group_gpus[gr] then v_domain[gr] else 0 end;
                                continue when y = any (v_tried) or y = v_best;
                                if y = 0 then
                                    lv := 2147483646;
                                else
                                    lv := 0;
                                    for j in v_from[a]..v_to[a] loop
                                        if v_domain[v_alt_group[j]] = y then
                                            lv := lv + v_whole[v_alt_group[j]];
                                        end if;
                                    end loop;
                                    continue when lv < k;
                                end if;
                                if lv < v_sum then
                                    v_sum := lv;  v_best := y;
                                end if;
                            end loop;
                            exit domains when v_best < 0;
                            v_dom := v_best;  v_tried := v_tried || v_dom;
                        end if;

                        v_got := 0;
                        if v_heads > 0 then
                            v_taken := array_fill(0, array[v_heads]);
                        end if;
                        <<search>>
                        for v_seg in 1..2 loop
                            -- Groups without GPUs, then those with; a job with GPUs has none of the first.
                            if v_seg = 1 then
                                v_seg_from := v_from[a];  v_seg_to := v_mid[a];
                            else
                                v_seg_from := v_mid[a] + 1;  v_seg_to := v_to[a];
                            end if;
                            continue when v_seg_from > v_seg_to;
                            for lv in g..v_max_level loop
                                for e in v_seg_from..v_seg_to loop
                                    x := v_first[v_alt_list[e] + lv];
                                    continue when x = 0;
                                    gr := v_alt_group[e];
                                    continue when v_dom > 0 and v_domain[gr] <> v_dom;
                                    continue when v_dom = 0 and k > 1 and v_domain[gr] > 0
                                              and (v_excl or g = v_group_gpus[gr]);
                                    h := v_claim[gr];
                                    y := 0;
                                    while x > 0 loop
                                        if v_gpus[x] >= g and v_cpus[x] >= c and v_mem[x] >= m
                                           and (not v_excl or v_jobs[x] = 0)
                                           and (not v_listed[s] or v_allow[x]) then
                                            v_take := true;
                                            if h = 0 or v_tl <= v_head_wait_s[h] or not v_fits[x] then
                                                null;
                                            elsif not v_excl and v_head_gpus[h] >= 0
                                                  and v_then_gpus[x] - g >= v_head_gpus[h]
                                                  and v_then_cpus[x] - c >= v_head_cpus[h]
                                                  and v_then_mem[x] - m >= v_head_mem[h] then
                                                null;
                                            elsif v_head_slack[h] > v_taken[h] then
                                                v_taken[h] := v_taken[h] + 1;
                                            else
                                                v_guarded := true;  v_take := false;
                                            end if;
                                            if v_take then
                                                -- Off the list; a gang that stays incomplete puts its nodes back.
                                                v_got := v_got + 1;  v_pick[v_got] := x;
                                                if y = 0 then
                                                    v_first[(gr - 1) * 64 + lv + 1] := v_next[x];
                                                else
                                                    v_next[y] := v_next[x];
                                                end if;
                                                exit search when v_got = k;
                                                x := v_next[x];
                                                continue;
                                            end if;
                                        end if;
                                        y := x;  x := v_next[x];
                                    end loop;
                                end loop;
                            end loop;
                        end loop search;
                        exit alternatives when v_got = k;
                        for j in reverse v_got..1 loop
                            x := v_pick[j];  gr := v_group[x];
                            lv := case when v_group_gpus[gr] > 0 then v_gpus[x]
                                       else (8 * v_cpus[x] + v_group_cpus[gr] - 1) / v_group_cpus[gr] end;
                            y := (gr - 1) * 64 + lv + 1;
                            v_next[x] := v_first[y];  v_first[y] := x;
                        end loop;
                        exit domains when k = 1;
                    end loop domains;
                end loop alternatives;
                exit when v_got < k;

                v_starts := v_starts + 1;
                start_jobs[v_starts] := v_job_ids[i];  start_partitions[v_starts] := v_part;
                start_nodes[v_starts] := k;  start_limits_s[v_starts] := v_tl;
                for j in 1..k loop
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
                    v_next[x] := v_first[y];  v_first[y] := x;
                    h := v_claim[gr];
                    if h > 0 and v_tl > v_head_wait_s[h] and v_fits[x] then
                        v_then_gpus[x] := v_then_gpus[x] - v_tg;  v_then_cpus[x] := v_then_cpus[x] - v_tc;
                        v_then_mem[x] := v_then_mem[x] - v_tm;
                        if v_excl or v_head_gpus[h] < 0 or v_then_gpus[x] < v_head_gpus[h]
                           or v_then_cpus[x] < v_head_cpus[h] or v_then_mem[x] < v_head_mem[h] then
                            v_fits[x] := false;  v_head_slack[h] := v_head_slack[h] - 1;
                        end if;
                    end if;
                    v_allocs := v_allocs + 1;
                    v_pos[v_allocs] := x;
                    alloc_nodes[v_allocs] := v_node_ids[x];  alloc_masks[v_allocs] := b;
                    alloc_gpus[v_allocs] := v_tg;  alloc_cpus[v_allocs] := v_tc;  alloc_mems[v_allocs] := v_tm;
                end loop;
                v_left := v_left - 1;
                if v_starts >= p_start_limit then
                    more := true;
                    exit;
                end if;
            end loop;
            if more then
                v_done := true;
                exit;
            end if;
            continue when v_left = 0;

            -- It does not fit. Is one of its groups claimed already?
            v_claimed := false;  v_hi := -1;
            for a in v_alt_from[s]..v_alt_to[s] loop
                for e in v_from[a]..v_to[a] loop
                    h := v_claim[v_alt_group[e]];
                    if h > 0 then
                        if not v_claimed then
                            v_claimed := true;
                            v_refused[s] := coalesce(v_refused[s], 'Priority');
                            v_behind[s] := coalesce(v_behind[s], head_jobs[h]);
                        end if;
                        if v_guarded and v_head_wait_s[h] < v_tl then
                            v_hi := greatest(v_hi, v_head_wait_s[h]);
                        end if;
                    end if;
                end loop;
            end loop;
            v_dead[s] := v_hi;
            continue when v_claimed;

            -- Nobody claims them: protect it.
            for a in v_alt_from[s]..v_alt_to[s] loop
                v_need := array_fill(false, array[cardinality(v_node_ids)]);
                v_doms := array_fill(0, array[cardinality(v_node_ids)]);
                v_tried := v_alt_group[v_from[a]:v_to[a]];
                for x in 1..cardinality(v_node_ids) loop
                    gr := v_group[x];
                    if gr = any (v_tried) and (not v_listed[s] or v_allow[x]) then
                        v_need[x] := true;
                        if k > 1 and (v_excl or g = v_group_gpus[gr]) then
                            v_doms[x] := v_domain[gr];
                        end if;
                    end if;
                end loop;
                select * into v_h
                  from _plan_protect(
                       p_now, v_node_ids, v_need, v_doms, v_gpus, v_cpus, v_mem,
                       v_group, v_group_gpus, v_group_cpus, v_group_mems,
                       k, case when v_excl then -1 else g end, case when v_excl then -1 else c end,
                       case when v_excl then -1 else m end,
                       v_pos, alloc_gpus, alloc_cpus, alloc_mems,
                       (select array_agg(start_limits_s[t.o] order by t.o, z)
                          from unnest(start_nodes) with ordinality as t (n, o), generate_series(1, t.n) as z));
                exit when v_h.planned_at is not null;
            end loop;
            v_heads := v_heads + 1;
            head_jobs[v_heads] := v_job_ids[i];  head_ats[v_heads] := v_h.planned_at;
            head_fittings[v_heads] := coalesce(v_h.fitting, 0);  head_shapes[v_heads] := v_shape_ids[s];
            head_nodes[v_heads] := (select string_agg(v_node_ids[t.x]::text, ',') from unnest(v_h.chosen) as t (x));
            v_refused[s] := case when v_h.planned_at is null then 'ReqNodeNotAvail' else 'Resources' end;
            v_head_gpus[v_heads] := case when v_excl then -1 else g end;
            v_head_cpus[v_heads] := case when v_excl then -1 else c end;
            v_head_mem[v_heads] := case when v_excl then -1 else m end;
            if v_h.planned_at is null then
                -- Its nodes are not there, or are taken without end: it waits in nobody's way.
                v_head_wait_s[v_heads] := v_unlimited;  v_head_slack[v_heads] := 0;
                continue;
            end if;
            v_head_wait_s[v_heads] := least(v_unlimited - 1, floor(extract(epoch from v_h.planned_at - p_now)))::integer;
            v_head_slack[v_heads] := v_h.fit_count - k;
            if v_fits is null then
                v_fits := array_fill(false, array[cardinality(v_node_ids)]);
                v_then_gpus := array_fill(0, array[cardinality(v_node_ids)]);
                v_then_cpus := v_then_gpus;  v_then_mem := v_then_gpus;
            end if;
            for x in 1..cardinality(v_node_ids) loop
                if v_need[x] then
                    v_claim[v_group[x]] := v_heads;
                end if;
                if v_h.fits[x] then
                    v_fits[x] := true;  v_then_gpus[x] := v_h.then_gpus[x];
                    v_then_cpus[x] := v_h.then_cpus[x];  v_then_mem[x] := v_h.then_mems[x];
                end if;
            end loop;
            v_nice := v_q.nices[i];  v_queued_at := v_q.queued_ats[i];  v_job_id := v_job_ids[i];
            v_restart := true;  v_done := false;
            exit;
        end loop;
        if v_tail >= 0 and v_restart then
            v_tail := -v_job_id;
        elsif not v_restart and not v_done then
            v_nice := v_q.nices[v_rows];  v_queued_at := v_q.queued_ats[v_rows];  v_job_id := v_job_ids[v_rows];
        elsif v_done and v_tail < 0 and p_what_if is not null and not more then
            v_tail := 0;  v_done := false;
        end if;
    end loop;

    select array_agg(v_shape_ids[t.o] order by t.o), array_agg(t.reason order by t.o),
           array_agg(v_behind[t.o] order by t.o)
      into refused_shapes, refused_reasons, refused_heads
      from unnest(v_refused) with ordinality as t (reason, o)
     where t.reason is not null and v_shape_ids[t.o] > 0;
end;
$$;
