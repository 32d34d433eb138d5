-- odc._forecast_starts: simulate the queue with predicted run times, to find when its jobs start.
-- It imitates passes, one at each moment at which predicted ends free nodes. Jobs start in the order of the queue. The
-- first job of each set of overlapping nodes that cannot start is protected by time limits, as in the planner. Other jobs
-- start behind it, in the policy's backfill order, if their limit ends before its start or their nodes leave enough for
-- it. The free part of a node is one number, its level: GPUs, or CPUs on a node without GPUs (in 62nds if it has more
-- CPUs). Nodes that jobs include or exclude by name form groups of their own. Nodes booked now are left out, and so are
-- jobs that run inside a booking. It ignores future bookings, changes of the queue's order over time, and later
-- submissions; the caller's calibration compensates for these on average.
--
-- Time is divided into steps that grow with the distance (1/128 of it, 1/64 in large clusters). A step has the ends that
-- fall into it. Within a step, a shape that found no nodes is dead, so a walk considers few classes (equal shape
-- and limit). The protected start is kept while its job stays the first, and recomputed every eighth step.
--
-- Arguments  p_limit    consider this many jobs of the queue
--            p_targets  stop when these have started; null: all
--            p_without  leave these jobs out
-- Returns    per job of the queue, in its order: id, seconds from p_now to its start (null: not in sight)
create or replace function odc._forecast_starts(
    p_now timestamptz, p_limit integer, p_targets bigint[], p_without bigint[] default '{}', out job_ids bigint[],
    out waits_s integer[])
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_pow constant integer[] := (select array_agg(1 << i order by i) from generate_series(0, 29) as i);
    v_far constant integer := 1000000000;
    v_n record;  v_s record;
    v_r record;                 -- running jobs
    v_bits integer;             -- a step is 1 / 2^bits of the distance
    -- groups; nodes that are partly free are in lists, others are only counted
    v_full integer[];           -- the level of a free node
    v_whole integer[];          -- number of free nodes
    v_free integer[];           -- sum of levels
    v_spare integer[];          -- first of the positions for nodes that are not in the lists
    v_first integer[];          -- first node of a list: (group - 1) * 64 + level + 1
    v_group integer[];  v_level integer[];  v_next integer[];  v_prev integer[];
    v_domain integer[];  v_domains integer;
    v_in_domain integer[];      -- free nodes per domain; the last: those without a domain
    -- shapes
    v_count integer[];  v_from integer[];  v_to integer[];  v_alt_from integer[];  v_alt_to integer[];
    v_alt_group integer[];  v_need integer[];  v_dead integer[];  v_alive integer;  v_shapes integer;  v_dead0 integer[];
    -- classes: lists of jobs, themselves in a list by their first job
    v_shape integer[];  v_limit integer[];  v_head integer[];  v_after integer[];  v_before integer[];  v_first_class integer;
    v_defers boolean[];         -- for jobs behind a protected job, the policy has another order
    v_back integer[];           -- the classes in that order
    v_deferred boolean;  v_at integer;  -- whether the walk in that order is still to come; its position, -1 before it
    -- jobs
    v_job_next integer[];  v_run integer[];  v_tasks integer[];  v_target boolean[];  v_todo integer;
    -- releases: entries are in the list of their step, by predicted end and by limit
    v_e_group integer[];  v_e_node integer[];  v_e_units integer[];  -- node 0: this many whole nodes of the group
    v_e_next integer[];  v_e_later integer[];  v_e_live boolean[];
    v_entries integer;  v_end integer[];  v_late integer[];  v_last integer := 0;  v_last_late integer := 0;
    v_ends integer[];  v_lates integer[];
    v_end_any integer[];  v_late_any integer[];  -- per 32 steps: whether they were ever used
    -- protected jobs, by the groups they claim
    v_claim integer[];  v_claim0 integer[];  v_h_job integer[];  v_h_start integer[];  v_h_slack integer[];
    v_h_need integer[];         -- per group: level that the claiming job needs
    v_then integer[];  v_then_whole integer[];  -- level of a node, whole nodes of a group at the protected start
    v_heads integer;  v_steps integer := 0;
    -- the nodes a job takes; node 0: whole nodes, -1: a part of a whole node
    v_picks integer;  v_pick_group integer[] := '{}';  v_pick_node integer[] := '{}';  v_pick_units integer[] := '{}';
    v_want integer;
    -- loop variables and scratch values
    a integer;  b integer;  c integer;  d integer;  e integer;  g integer;  h integer;  i integer;  j integer;  k integer;
    l integer;  n integer;  p integer;  q integer;  s integer;  t integer;  u integer;  x integer;  y integer;
    v_marks text[];             -- per group, if jobs name nodes: the shapes that name its nodes (see _split_named)
    v_fits integer;  v_hurt integer;  v_sole boolean;  v_more boolean;
begin
    select array_agg(f.job_id order by f.place) as ids, array_agg(f.shape_id order by f.place) as shapes,
           array_agg(f.time_limit_s order by f.place) as limits,
           array_agg(least(f.tasks, 1000) order by f.place) as tasks, array_agg(f.backfill order by f.place) as backfills,
           array_agg(f.uid order by f.place) as uids,
           array_agg(coalesce(f.job_id = any (p_targets), true) order by f.place) as targets
      into v_n
      from (select q.*, max(q.place) filter (where q.job_id = any (p_targets)) over () as last
              from _forecast_queue(p_now, p_limit, p_without) as q) as f
     where p_targets is null or f.place <= f.last;
    job_ids := v_n.ids;
    if job_ids is null then
        return;
    end if;
    v_tasks := v_n.tasks;  v_target := v_n.targets;
    select count(*) into v_todo from unnest(v_target) as w (target) where w.target;
    waits_s := array_fill(null::integer, array[cardinality(job_ids)]);
    if v_todo = 0 then
        return;
    end if;
    -- Run times of queued and of running jobs; for running jobs, given how long they have run.
    select array_agg(r.job_id order by r.job_id) as ids, array_agg(r.uid order by r.job_id) as uids,
           array_agg(r.shape_id order by r.job_id) as shapes, array_agg(r.time_limit_s order by r.job_id) as limits,
           array_agg(r.state = 'COMPLETING' or r.intent is not null order by r.job_id) as leaving,
           array_agg(greatest(0, extract(epoch from p_now - r.started_at))::integer order by r.job_id) as elapsed
      into v_r
      from running as r;
    select array_agg(least(r.p50_s, v_far) order by r.ord) into v_run
      from _predict_run_times(v_n.uids || v_r.uids, _run_names(job_ids || v_r.ids), v_n.shapes || v_r.shapes,
                              v_n.limits || v_r.limits, array_fill(-1, array[cardinality(job_ids)]) || v_r.elapsed) as r;
    select array_agg(z.shape order by z.class), array_agg(z.limit_s order by z.class), array_agg(z.head order by z.class),
           array_agg(z.backfill in ('sjbf', 'safbf') order by z.class),
           array_agg(z.class order by case z.backfill when 'safbf' then z.area else z.limit_s end, z.class),
           array_agg((case when z.class = z.last then 0 else z.class + 1 end)::integer order by z.class),
           array_agg((z.class - 1)::integer order by z.class)
      into v_shape, v_limit, v_head, v_defers, v_back, v_after, v_before
      from (select y.shape, least(y.limit_s, v_far) as limit_s, y.head, y.backfill, row_number() over (order by y.head) as class,
                   y.limit_s * (d.node_count * greatest(d.gpus_per_node, 1))::bigint as area, count(*) over () as last
              from (select w.shape, w.limit_s, min(w.backfill) as backfill, min(w.o)::integer as head
                      from unnest(v_n.shapes, v_n.limits, v_n.backfills) with ordinality as w (shape, limit_s, backfill, o)
                     group by w.shape, w.limit_s) as y
              join shape as d on d.id = y.shape) as z;
    v_first_class := 1;
    select array_agg(coalesce(w.next, 0) order by w.o) into v_job_next
      from (select u.o, lead(u.o) over (partition by u.shape, u.limit_s order by u.o)::integer as next
              from unnest(v_n.shapes, v_n.limits) with ordinality as u (shape, limit_s, o)) as w;

    select * into v_n from _plan_nodes(null);
    if exists (select from booking) then
        select array_agg(u.id order by u.o), array_agg(u.g order by u.o)
          into v_n.node_ids, v_n.groups
          from unnest(v_n.node_ids, v_n.groups) with ordinality as u (id, g, o)
         where not exists (select from _plan_bookings(p_now) as w
                            where w.node_id = u.id and w.starts_at <= p_now and w.ends_at > p_now);
    end if;
    if v_n.node_ids is null then
        return;
    end if;
    if exists (select from shape as d where d.id = any (v_shape) and (d.node_list is not null or d.exclude_nodes is not null)) then
        select w.groups, w.marks, array_agg(v_n.group_ids[u.g] order by u.o) as ids, array_agg(v_n.group_gpus[u.g] order by u.o) as gpus,
               array_agg(v_n.group_cpus[u.g] order by u.o) as cpus, array_agg(v_n.group_mems[u.g] order by u.o) as mems,
               array_agg(v_n.group_domains[u.g] order by u.o) as domains
          into v_s
          from _split_named(v_n.node_ids, v_n.groups, v_shape) as w
         cross join lateral unnest(w.of_groups) with ordinality as u (g, o)
         group by w.groups, w.marks;
        v_marks := v_s.marks;
        v_n.groups := v_s.groups;  v_n.group_ids := v_s.ids;  v_n.group_gpus := v_s.gpus;  v_n.group_cpus := v_s.cpus;
        v_n.group_mems := v_s.mems;  v_n.group_domains := v_s.domains;
    end if;
    select * into v_s from _plan_shapes(v_n.group_ids, v_shape, null, null);
    if v_marks is not null then
        select a.froms, a.tos, a.groups into v_s.alt_group_from, v_s.alt_group_to, v_s.alt_groups
          from _keep_named(v_marks, v_s.ids, v_s.alt_from, v_s.alt_to, v_s.alt_group_from, v_s.alt_group_to, v_s.alt_groups) as a;
    end if;
    select array_agg(w.number::integer order by u.o) into v_shape
      from unnest(v_shape) with ordinality as u (id, o)
      join unnest(v_s.ids) with ordinality as w (id, number) on w.id = u.id;
    v_group := v_n.groups;  v_domain := v_n.group_domains;
    v_count := v_s.node_counts;  v_alt_from := v_s.alt_from;  v_alt_to := v_s.alt_to;
    v_from := v_s.alt_group_from;  v_to := v_s.alt_group_to;  v_alt_group := v_s.alt_groups;
    select array_agg(case when w.gpus > 0 then w.gpus else least(w.cpus, 62) end order by w.o) into v_full
      from unnest(v_n.group_gpus, v_n.group_cpus) with ordinality as w (gpus, cpus, o);
    v_dead0 := array_fill(2147483647, array[cardinality(v_count)]);
    v_need := array_fill(0, array[greatest(1, coalesce(cardinality(v_alt_group), 0))]);
    v_shapes := cardinality(v_count);
    for s in 1..cardinality(v_count) loop
        if v_alt_to[s] < v_alt_from[s] or v_to[v_alt_to[s]] < v_from[v_alt_from[s]] or v_s.booking_ids[s] is not null then
            v_dead0[s] := -1;  v_shapes := v_shapes - 1;
            continue;
        end if;
        for e in v_from[v_alt_from[s]]..v_to[v_alt_to[s]] loop
            g := v_alt_group[e];  u := v_full[g];
            v_need[e] := case when v_s.exclusives[s] then u
                else least(u, greatest(1, v_s.gpus[s], (2 * u * v_s.cpus[s] + v_n.group_cpus[g]) / (2 * v_n.group_cpus[g]),
                        ((2::bigint * u * v_s.mems[s] + v_n.group_mems[g]) / (2 * v_n.group_mems[g]::bigint))::integer)) end;
        end loop;
    end loop;
    -- The resources of running jobs, with the steps of their ends.
    with ending as materialized (
        select r.job_id,
               case when r.leaving then 1 else greatest(1, r.run_s - r.elapsed_s) end as end_s,
               case when r.leaving then 1 else greatest(1, least(v_far, r.limit_s) - r.elapsed_s) end as late_s
          from unnest(v_r.ids, v_r.leaving, v_r.elapsed, v_r.limits, v_run[cardinality(job_ids) + 1:])
               as r (job_id, leaving, elapsed_s, limit_s, run_s)
    ), held as materialized (
        select a.job_id, n.x::integer as x, n.g, y.end_s, y.late_s, w.units,
               w.units = v_full[n.g] and count(*) over (partition by n.x) = 1 as whole
          from unnest(v_n.node_ids, v_group) with ordinality as n (id, g, x)
          join allocation as a on a.node_id = n.id
          join ending as y on y.job_id = a.job_id
         cross join lateral (
               select least(v_full[n.g], greatest(1, a.gpus,
                    (2 * v_full[n.g] * a.cpus + v_n.group_cpus[n.g]) / (2 * v_n.group_cpus[n.g]),
                    ((2::bigint * v_full[n.g] * a.mem_mib + v_n.group_mems[n.g]) / (2 * v_n.group_mems[n.g]::bigint))::integer))
                   as units) as w
    ), entry as (
        select h.g, 0 as x, count(*)::integer as units, h.end_s, h.late_s, min(h.x) as ord
          from held as h where h.whole group by h.job_id, h.g, h.end_s, h.late_s
         union all
        select h.g, h.x, h.units, h.end_s, h.late_s, h.x from held as h where not h.whole
    )
    select (select array_agg(e.g order by e.end_s, e.ord) from entry as e),
           (select array_agg(e.x order by e.end_s, e.ord) from entry as e),
           (select array_agg(e.units order by e.end_s, e.ord) from entry as e),
           (select array_agg(e.end_s order by e.end_s, e.ord) from entry as e),
           (select array_agg(e.late_s order by e.end_s, e.ord) from entry as e),
           (select array_agg(case when t.whole then -1 else greatest(0, v_full[n.g] - coalesce(t.units, 0)) end::integer
                             order by n.x)
              from unnest(v_group) with ordinality as n (g, x)
              left join (select h.x, sum(h.units) as units, bool_or(h.whole) as whole from held as h group by h.x) as t
                on t.x = n.x)
      into v_e_group, v_e_node, v_e_units, v_ends, v_lates, v_level;
    v_entries := coalesce(cardinality(v_e_node), 0);
    v_bits := case when v_entries + cardinality(job_ids) < 1500 then 7 else 6 end;
    v_e_group := coalesce(v_e_group, '{}');  v_e_node := coalesce(v_e_node, '{}');  v_e_units := coalesce(v_e_units, '{}');
    v_e_next := array_fill(0, array[greatest(1, v_entries)]);  v_e_later := v_e_next;
    v_e_live := array_fill(true, array[greatest(1, v_entries)]);
    v_end := array_fill(0, array[(34 - v_bits) << v_bits]);  v_late := v_end;
    v_end_any := array_fill(0, array[((34 - v_bits) << v_bits >> 5) + 1]);  v_late_any := v_end_any;
    for i in reverse v_entries..1 loop
        t := v_ends[i];
        e := greatest(0, width_bucket(t, v_pow) - 1 - v_bits);
        b := (t >> e) + (e << v_bits);
        v_e_next[i] := v_end[b];  v_end[b] := i;  v_end_any[(b >> 5) + 1] := 1;
        v_last := greatest(v_last, b);
        t := v_lates[i];
        e := greatest(0, width_bucket(t, v_pow) - 1 - v_bits);
        b := (t >> e) + (e << v_bits);
        v_e_later[i] := v_late[b];  v_late[b] := i;  v_late_any[(b >> 5) + 1] := 1;
        v_last_late := greatest(v_last_late, b);
    end loop;
    select coalesce(max(w.domain), 0) into v_domains from unnest(v_domain) as w (domain);
    select array_agg(case when w.domain = 0 then v_domains + 1 else w.domain end order by w.o) into v_domain
      from unnest(v_domain) with ordinality as w (domain, o);
    v_in_domain := array_fill(0, array[v_domains + 1]);
    v_first := array_fill(0, array[cardinality(v_full) * 64]);
    v_free := array_fill(0, array[cardinality(v_full)]);
    v_whole := v_free;  v_spare := v_free;  v_claim0 := v_free;  v_h_need := v_free;  v_then_whole := v_free;
    v_next := array_fill(0, array[cardinality(v_group)]);  v_prev := v_next;
    for x in reverse cardinality(v_group)..1 loop
        g := v_group[x];  l := v_level[x];
        if l = v_full[g] or l < 0 then
            v_next[x] := v_spare[g];  v_spare[g] := x;
            if l > 0 then
                v_whole[g] := v_whole[g] + 1;  v_free[g] := v_free[g] + l;
                v_in_domain[v_domain[g]] := v_in_domain[v_domain[g]] + 1;
            end if;
        else
            v_free[g] := v_free[g] + l;
            y := (g - 1) * 64 + l + 1;
            n := v_first[y];  v_next[x] := n;  v_first[y] := x;
            if n > 0 then v_prev[n] := x; end if;
        end if;
    end loop;
    v_then := v_level;

    b := 0;
    <<steps>>
    while b < v_last loop
        b := b + 1;
        if b & 31 = 0 and v_end_any[(b >> 5) + 1] = 0 then
            b := b + 31;
            continue;
        end if;
        i := v_end[b];
        continue when i = 0;
        v_steps := v_steps + 1;
        e := greatest(0, (b >> v_bits) - 1);
        t := ((b - (e << v_bits)) << e) + ((1 << e) >> 1);
        exit steps when t > v_far;      -- in 31 years; later ends would not fit into an integer
        while i > 0 loop
            x := v_e_node[i];  u := v_e_units[i];  g := v_e_group[i];  v_e_live[i] := false;
            if x = 0 then
                v_whole[g] := v_whole[g] + u;  v_free[g] := v_free[g] + u * v_full[g];
                d := v_domain[g];  v_in_domain[d] := v_in_domain[d] + u;
            else
                l := v_level[x];  n := v_next[x];  p := v_prev[x];
                if p > 0 then v_next[p] := n; else v_first[(g - 1) * 64 + l + 1] := n; end if;
                if n > 0 then v_prev[n] := p; end if;
                v_free[g] := v_free[g] - l;
                l := least(v_full[g], l + u);
                v_free[g] := v_free[g] + l;
                if l = v_full[g] then
                    v_whole[g] := v_whole[g] + 1;
                    d := v_domain[g];  v_in_domain[d] := v_in_domain[d] + 1;
                    v_next[x] := v_spare[g];  v_spare[g] := x;
                else
                    v_level[x] := l;  y := (g - 1) * 64 + l + 1;
                    n := v_first[y];  v_next[x] := n;  v_prev[x] := 0;  v_first[y] := x;
                    if n > 0 then v_prev[n] := x; end if;
                end if;
            end if;
            i := v_e_next[i];
        end loop;

        -- A pass.
        v_dead := v_dead0;  v_claim := v_claim0;  v_heads := 0;
        v_alive := v_shapes;  v_deferred := false;  v_at := -1;
        c := v_first_class;
        <<walk>>
        loop
            if c = 0 then
                if v_at < 0 then
                    exit walk when not v_deferred;
                    v_at := 0;
                end if;
                v_at := v_at + 1;
                exit walk when v_at > cardinality(v_back);
                c := v_back[v_at];
                if v_head[c] = 0 or not v_defers[c] then
                    c := 0;
                    continue;
                end if;
            end if;
            s := v_shape[c];
            if v_dead[s] <= v_limit[c] then
                c := case when v_at < 0 then v_after[c] else 0 end;
                continue;
            end if;
            if v_heads > 0 and v_at < 0 and v_defers[c] then
                v_more := false;
                for j in v_from[v_alt_from[s]]..v_to[v_alt_to[s]] loop
                    if v_claim[v_alt_group[j]] > 0 then
                        v_more := true;
                        exit;
                    end if;
                end loop;
                if v_more then
                    v_deferred := true;  c := v_after[c];
                    continue;
                end if;
            end if;
            i := v_head[c];  k := v_count[s];  v_picks := 0;
            <<search>>
            for a in v_alt_from[s]..v_alt_to[s] loop
                if k = 1 then
                    for j in v_from[a]..v_to[a] loop
                        g := v_alt_group[j];  u := v_need[j];
                        continue when v_free[g] < u;
                        for l in u..v_full[g] - 1 loop
                            x := v_first[(g - 1) * 64 + l + 1];
                            if x > 0 then
                                v_picks := 1;  v_pick_group[1] := g;  v_pick_node[1] := x;  v_pick_units[1] := u;
                                exit search;
                            end if;
                        end loop;
                        if v_whole[g] > 0 then
                            v_picks := 1;  v_pick_group[1] := g;
                            if u = v_full[g] then
                                v_pick_node[1] := 0;  v_pick_units[1] := 1;
                            else
                                v_pick_node[1] := -1;  v_pick_units[1] := u;
                            end if;
                            exit search;
                        end if;
                    end loop;
                else
                    -- Whole nodes come from one domain, parts of nodes from anywhere.
                    v_sole := v_need[v_from[a]] = v_full[v_alt_group[v_from[a]]];
                    for d in 1..(case when v_sole then v_domains + 1 else 1 end) loop
                        continue when v_sole and v_in_domain[d] < k;
                        v_picks := 0;  v_want := k;
                        for j in v_from[a]..v_to[a] loop
                            g := v_alt_group[j];  u := v_need[j];
                            continue when v_free[g] < u or v_sole and v_domain[g] <> d;
                            for l in u..v_full[g] - 1 loop
                                x := v_first[(g - 1) * 64 + l + 1];
                                while x > 0 and v_want > 0 loop
                                    v_picks := v_picks + 1;  v_want := v_want - 1;
                                    v_pick_group[v_picks] := g;  v_pick_node[v_picks] := x;  v_pick_units[v_picks] := u;
                                    x := v_next[x];
                                end loop;
                            end loop;
                            n := least(v_want, v_whole[g]);
                            v_want := v_want - n;
                            if n > 0 and u = v_full[g] then
                                v_picks := v_picks + 1;
                                v_pick_group[v_picks] := g;  v_pick_node[v_picks] := 0;  v_pick_units[v_picks] := n;
                            else
                                for l in 1..n loop
                                    v_picks := v_picks + 1;
                                    v_pick_group[v_picks] := g;  v_pick_node[v_picks] := -1;  v_pick_units[v_picks] := u;
                                end loop;
                            end if;
                            exit search when v_want = 0;
                        end loop;
                    end loop;
                    v_picks := 0;
                end if;
            end loop;

            if v_picks = 0 then
                v_dead[s] := -1;  v_alive := v_alive - 1;
                -- The first job that waits for some nodes is protected there.
                v_more := true;
                for j in v_from[v_alt_from[s]]..v_to[v_alt_to[s]] loop
                    if v_claim[v_alt_group[j]] > 0 then
                        v_more := false;
                        exit;
                    end if;
                end loop;
                if v_more then
                    v_heads := v_heads + 1;  h := v_heads;
                    for j in v_from[v_alt_from[s]]..v_to[v_alt_to[s]] loop
                        v_claim[v_alt_group[j]] := h;
                    end loop;
                    if v_h_job[h] is distinct from i or v_steps & 7 = 0 then
                        v_h_job[h] := i;
                        if h = 1 then
                            v_then := v_level;
                        else
                            for x in 1..cardinality(v_group) loop
                                if v_claim[v_group[x]] = h then
                                    v_then[x] := v_level[x];
                                end if;
                            end loop;
                        end if;
                        v_fits := 0;
                        for j in v_from[v_alt_from[s]]..v_to[v_alt_to[s]] loop
                            g := v_alt_group[j];
                            v_h_need[g] := v_need[j];  v_then_whole[g] := v_whole[g];
                            v_fits := v_fits + v_whole[g];
                            for l in v_need[j]..v_full[g] - 1 loop
                                x := v_first[(g - 1) * 64 + l + 1];
                                while x > 0 loop
                                    v_fits := v_fits + 1;  x := v_next[x];
                                end loop;
                            end loop;
                        end loop;
                        v_h_start[h] := 2147483647;
                        d := b - 1;
                        while d < v_last_late loop
                            d := d + 1;
                            if d & 31 = 0 and v_late_any[(d >> 5) + 1] = 0 then
                                d := d + 31;
                                continue;
                            end if;
                            j := v_late[d];
                            continue when j = 0;
                            while j > 0 loop
                                g := v_e_group[j];
                                if v_claim[g] = h and v_e_live[j] then
                                    x := v_e_node[j];  u := v_e_units[j];
                                    if x = 0 then
                                        v_then_whole[g] := v_then_whole[g] + u;  v_fits := v_fits + u;
                                    else
                                        l := v_then[x];  u := l + u;  v_then[x] := u;
                                        if l < v_h_need[g] and u >= v_h_need[g] then
                                            v_fits := v_fits + 1;
                                        end if;
                                    end if;
                                end if;
                                j := v_e_later[j];
                            end loop;
                            if v_fits >= k then
                                e := greatest(0, (d >> v_bits) - 1);
                                v_h_start[h] := (d + 1 - (e << v_bits)) << e;
                                exit;
                            end if;
                        end loop;
                        v_h_slack[h] := v_fits - k;
                    end if;
                end if;
                exit walk when v_alive = 0;
                c := case when v_at < 0 then v_after[c] else 0 end;
                continue;
            end if;

            -- Would it take a protected job's nodes?
            h := v_claim[v_pick_group[1]];
            if h > 0 and v_h_start[h] - t < v_limit[c] then
                v_hurt := 0;
                for n in 1..v_picks loop
                    g := v_pick_group[n];  x := v_pick_node[n];  u := v_pick_units[n];
                    if x = 0 then
                        v_hurt := v_hurt + u;
                    elsif x < 0 then
                        v_hurt := v_hurt + (v_full[g] - u < v_h_need[g])::integer;
                    else
                        v_hurt := v_hurt + (v_then[x] >= v_h_need[g] and v_then[x] - u < v_h_need[g])::integer;
                    end if;
                end loop;
                if v_hurt > v_h_slack[h] then
                    v_dead[s] := v_limit[c];
                    c := case when v_at < 0 then v_after[c] else 0 end;
                    continue;
                end if;
                v_h_slack[h] := v_h_slack[h] - v_hurt;
            end if;

            -- It starts. Its end falls into a later step.
            d := t + greatest(1, v_run[i]);
            e := greatest(0, width_bucket(d, v_pow) - 1 - v_bits);
            d := greatest(b + 1, (d >> e) + (e << v_bits));
            v_last := greatest(v_last, d);  v_end_any[(d >> 5) + 1] := 1;
            u := t + v_limit[c];
            e := greatest(0, width_bucket(u, v_pow) - 1 - v_bits);
            a := greatest(d, (u >> e) + (e << v_bits));
            v_last_late := greatest(v_last_late, a);  v_late_any[(a >> 5) + 1] := 1;
            for n in 1..v_picks loop
                g := v_pick_group[n];  x := v_pick_node[n];  u := v_pick_units[n];
                if x = 0 then
                    v_whole[g] := v_whole[g] - u;  v_free[g] := v_free[g] - u * v_full[g];
                    p := v_domain[g];  v_in_domain[p] := v_in_domain[p] - u;
                    v_then_whole[g] := v_then_whole[g] - u;
                else
                    if x < 0 then
                        x := v_spare[g];  v_spare[g] := v_next[x];
                        v_whole[g] := v_whole[g] - 1;
                        p := v_domain[g];  v_in_domain[p] := v_in_domain[p] - 1;
                        v_then_whole[g] := v_then_whole[g] - 1;
                        l := v_full[g];  v_then[x] := l;
                    else
                        l := v_level[x];  j := v_next[x];  p := v_prev[x];
                        if p > 0 then v_next[p] := j; else v_first[(g - 1) * 64 + l + 1] := j; end if;
                        if j > 0 then v_prev[j] := p; end if;
                    end if;
                    v_free[g] := v_free[g] - u;
                    l := l - u;  v_level[x] := l;  y := (g - 1) * 64 + l + 1;
                    j := v_first[y];  v_next[x] := j;  v_prev[x] := 0;  v_first[y] := x;
                    if j > 0 then v_prev[j] := x; end if;
                    if h > 0 and v_h_start[h] - t < v_limit[c] then
                        v_then[x] := v_then[x] - u;
                    end if;
                end if;
                v_entries := v_entries + 1;
                v_e_group[v_entries] := g;  v_e_node[v_entries] := x;  v_e_units[v_entries] := u;
                v_e_live[v_entries] := true;
                v_e_next[v_entries] := v_end[d];  v_end[d] := v_entries;
                v_e_later[v_entries] := v_late[a];  v_late[a] := v_entries;
            end loop;
            if waits_s[i] is null then
                waits_s[i] := t;
                if v_target[i] then
                    v_todo := v_todo - 1;
                    exit steps when v_todo = 0;
                end if;
            end if;
            if v_tasks[i] > 1 then
                v_tasks[i] := v_tasks[i] - 1;
                continue;
            end if;
            -- The class continues with its next job, and moves to that job's place among the classes.
            j := v_job_next[i];  n := v_after[c];
            v_head[c] := j;
            continue when j > 0 and (n = 0 or v_head[n] > j);
            p := v_before[c];
            if p > 0 then v_after[p] := n; else v_first_class := n; end if;
            if n > 0 then v_before[n] := p; end if;
            if j > 0 then
                p := n;
                while v_after[p] > 0 and v_head[v_after[p]] < j loop
                    p := v_after[p];
                end loop;
                q := v_after[p];
                v_after[c] := q;  v_before[c] := p;  v_after[p] := c;
                if q > 0 then v_before[q] := c; end if;
                continue when v_at >= 0;
            end if;
            c := case when v_at < 0 then n else 0 end;
        end loop;
    end loop;
end;
$$;
