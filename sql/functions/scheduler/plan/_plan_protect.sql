-- odc._plan_protect: the earliest start of a job that cannot start now, and the nodes that fit it then.
-- Only this function computes protection. It walks time from one change to the next: running jobs and this pass's starts
-- release their resources when their limits end, protected jobs take and release, bookings close and open nodes.
-- A node fits at a moment if its free amounts are enough then, and at every later start of a protected job that the
-- job would still run into. Moments are microseconds from the pass's time.
-- Arguments  p_groups, p_in_domain  groups that the job may use; whether its nodes must share an EFA domain
--            p_blocks, p_wish, p_lapse  per node its topology block; maximum number of blocks until p_lapse (null:
--                                   forever); p_wish null: any number. With p_wish no spare nodes are returned
--            p_group … p_mems       per node: group, free amounts now;  p_domain, p_group_*  per group
--            p_first, p_next        the lists of nodes by group and level; p_max_level
--            p_k … p_limit          nodes, amounts of one member (-1: all of the node), time limit
--            p_allow                per node: the job's lists allow it; null: all
--            p_booking              the job runs inside this booking; null: outside of all
--            p_rel_*                releases of running jobs, from _plan_releases, in order; complete up to p_rel_to
--                                   (null: all)
--            p_ev_at, p_ev_ref      changes by this pass, in order: h, -h: protected job h starts, ends;
--                                   1000000 + s: start s ends
--            p_from                 not before this moment: a preemptor keeps the start it was promised; null: at once
--            p_st_from, p_al_*      per start its first allocation; per allocation node and amounts
--            p_hp_from, p_h_*       per protected job its first point, its amounts
--            p_pt_*                 points: a moment at which a node's free amounts matter. head: the protected job,
--                                   or minus a booking; left: the amounts free from then on; pin: the node is reserved
--                                   for it
-- Returns    at: null if there is no such moment; fit: the nodes that fit then, in the order in which they became
--            free; then_*: amounts free on them; fitting: how many fit now; short: no such moment before p_rel_to
create or replace function odc._plan_protect(
    p_groups integer[], p_in_domain boolean, p_blocks integer[], p_wish integer, p_lapse bigint,
    p_group integer[], p_gpus integer[], p_cpus integer[], p_mems integer[],
    p_domain integer[], p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[],
    p_first integer[], p_next integer[], p_max_level integer,
    p_k integer, p_g integer, p_c integer, p_m integer, p_limit bigint, p_allow boolean[], p_booking integer,
    p_rel_at bigint[], p_rel_node integer[], p_rel_gpus integer[], p_rel_cpus integer[], p_rel_mems integer[], p_rel_to bigint,
    p_ev_at bigint[], p_ev_ref integer[],
    p_st_from integer[], p_al_node integer[], p_al_gpus integer[], p_al_cpus integer[], p_al_mems integer[],
    p_hp_from integer[], p_h_gpus integer[], p_h_cpus integer[], p_h_mems integer[],
    p_pt_first integer[], p_pt_next integer[], p_pt_node integer[], p_pt_head integer[], p_pt_at bigint[],
    p_pt_end bigint[], p_pt_gpus integer[], p_pt_cpus integer[], p_pt_mems integer[], p_pt_pin boolean[], p_from bigint,
    out at bigint, out fit integer[], out then_gpus integer[], out then_cpus integer[], out then_mems integer[],
    out fitting integer, out short boolean)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_gpus integer[] := p_gpus;  v_cpus integer[] := p_cpus;  v_mems integer[] := p_mems;
    v_usable boolean[];         -- per group
    v_expiry bigint[];          -- per node: until when it fits; -1: it does not fit
    v_list integer[] := '{}';   -- nodes in the order in which they came to fit; some no longer do
    v_count integer[];          -- per domain, from 0: nodes that fit
    v_wished boolean;
    v_touched integer[];  v_n integer := 0;
    v_rels integer := coalesce(cardinality(p_rel_at), 0);  v_evs integer := coalesce(cardinality(p_ev_at), 0);
    r integer := 1;  e integer := 1;  t bigint := 0;  v_e bigint;  v_ok boolean;
    x integer;  q integer;  h integer;  gr integer;  d integer;  i integer;  lv integer;  v_from integer;  v_to integer;
    g integer;  c integer;  m integer;  sign integer;  v_enough boolean;  v_until bigint;
begin
    fitting := 0;  short := false;
    v_usable := array_fill(false, array[cardinality(p_group_gpus)]);
    foreach gr in array p_groups loop
        v_usable[gr] := true;
    end loop;
    v_expiry := array_fill(-1::bigint, array[cardinality(p_gpus)]);
    v_count := array_fill(0, array[coalesce((select max(u) from unnest(p_domain) as u), 0) + 1]);
    v_touched := array_fill(0, array[cardinality(p_gpus)]);

    -- Nodes that might fit now: the lists of the levels that have enough GPUs.
    foreach gr in array p_groups loop
        for lv in (case when p_g < 0 then p_group_gpus[gr] else p_g end)..p_max_level loop
            x := p_first[(gr - 1) * 64 + lv + 1];
            while x > 0 loop
                v_n := v_n + 1;  v_touched[v_n] := x;
                x := p_next[x];
            end loop;
        end loop;
    end loop;

    loop
        -- Check again the nodes that changed at t.
        v_enough := false;
        for i in 1..v_n loop
            x := v_touched[i];  gr := p_group[x];
            if p_g < 0 then
                v_ok := v_gpus[x] = p_group_gpus[gr] and v_cpus[x] = p_group_cpus[gr] and v_mems[x] = p_group_mems[gr];
            else
                v_ok := v_gpus[x] >= p_g and v_cpus[x] >= p_c and v_mems[x] >= p_m;
            end if;
            v_ok := v_ok and coalesce(p_allow[x], true);
            v_e := case when v_ok then 9000000000000000000 else -1 end;
            if v_ok then
                v_ok := p_booking is null;
                q := p_pt_first[x];
                while q > 0 loop
                    h := p_pt_head[q];
                    if h = -p_booking then
                        if p_pt_at[q] <= t and p_pt_end[q] - p_limit >= t then
                            v_ok := true;  v_e := least(v_e, p_pt_end[q] - p_limit);
                        end if;
                    elsif h < 0 then
                        if p_pt_end[q] > t then
                            v_e := least(v_e, p_pt_at[q] - p_limit);
                        end if;
                    elsif p_pt_pin[q] and p_pt_at[q] > t
                          and (p_g < 0 or p_pt_gpus[q] < p_g or p_pt_cpus[q] < p_c or p_pt_mems[q] < p_m) then
                        v_e := least(v_e, p_pt_at[q] - p_limit);
                    end if;
                    q := p_pt_next[q];
                end loop;
                if not v_ok or v_e < t then
                    v_e := -1;
                end if;
            end if;
            d := case when p_in_domain then p_domain[gr] else 0 end + 1;
            if v_e >= 0 and v_expiry[x] < 0 then
                v_count[d] := v_count[d] + 1;  v_list := v_list || x;
                v_enough := v_enough or v_count[d] >= p_k;
            elsif v_e < 0 and v_expiry[x] >= 0 then
                v_count[d] := v_count[d] - 1;
                v_list := array_remove(v_list, x);
            end if;
            v_expiry[x] := v_e;
        end loop;
        if t = 0 then
            fitting := cardinality(v_list);
        end if;
        if (v_enough or t = p_lapse or t = p_from) and t >= coalesce(p_from, 0) then
            -- Some nodes may no longer fit.
            foreach x in array v_list loop
                if v_expiry[x] < t then
                    d := case when p_in_domain then p_domain[p_group[x]] else 0 end + 1;
                    v_count[d] := v_count[d] - 1;  v_expiry[x] := -1;
                    v_list := array_remove(v_list, x);
                end if;
            end loop;
            v_wished := p_wish is not null and (p_lapse is null or t < p_lapse);
            if v_wished then
                select min(u.d) into d
                  from (select b.d, sum(b.n) as n
                          from (select case when p_in_domain then p_domain[p_group[l.x]] else 0 end + 1 as d, count(*) as n,
                                       row_number() over (partition by case when p_in_domain then p_domain[p_group[l.x]] else 0 end
                                                              order by count(*) desc) as place
                                  from unnest(v_list) as l (x)
                                 group by 1, p_blocks[l.x], case when p_in_domain then p_domain[p_group[l.x]] else 0 end) as b
                         where b.place <= p_wish
                         group by b.d) as u
                 where u.n >= p_k;
            else
                d := array_position(array(select n >= p_k from unnest(v_count) with ordinality as u (n, o) order by o), true);
            end if;
            if d is not null then
                at := t;
                if v_wished then
                    v_list := _choose_blocks(
                        array(select l.x from unnest(v_list) with ordinality as l (x, o)
                               where not p_in_domain or p_domain[p_group[l.x]] = d - 1 order by l.o), p_blocks, p_k, p_wish);
                end if;
                select array_agg(u.x order by u.o), array_agg(v_gpus[u.x] order by u.o),
                       array_agg(v_cpus[u.x] order by u.o), array_agg(v_mems[u.x] order by u.o)
                  into fit, then_gpus, then_cpus, then_mems
                  from unnest(v_list) with ordinality as u (x, o)
                 where not p_in_domain or p_domain[p_group[u.x]] = d - 1;
                return;
            end if;
        end if;

        -- Go to the next change after which a node may fit; releases before it are only added up.
        t := least(case when e <= v_evs then p_ev_at[e] end,
                   case when p_wish is not null and p_lapse > t then p_lapse end, case when p_from > t then p_from end);
        v_until := coalesce(t, 9000000000000000000);
        v_n := 0;
        while r <= v_rels and p_rel_at[r] <= v_until loop
            x := p_rel_node[r];  gr := p_group[x];
            if v_usable[gr] and (p_allow is null or p_allow[x]) then
                v_gpus[x] := v_gpus[x] + p_rel_gpus[r];  v_cpus[x] := v_cpus[x] + p_rel_cpus[r];
                v_mems[x] := v_mems[x] + p_rel_mems[r];
                if v_gpus[x] >= p_g and v_cpus[x] >= p_c and v_mems[x] >= p_m
                   and (p_g >= 0 or v_gpus[x] = p_group_gpus[gr] and v_cpus[x] = p_group_cpus[gr]) then
                    v_n := v_n + 1;  v_touched[v_n] := x;
                    t := p_rel_at[r];  v_until := t;
                end if;
            end if;
            r := r + 1;
        end loop;
        short := coalesce(coalesce(t, p_rel_to) >= p_rel_to, false);
        exit when t is null or short;
        while e <= v_evs and p_ev_at[e] = t loop
            h := abs(p_ev_ref[e]);  sign := case when p_ev_ref[e] < 0 or h > 1000000 then 1 else -1 end;
            if h > 1000000 then
                v_from := p_st_from[h - 1000000];  v_to := p_st_from[h - 1000000 + 1] - 1;
            else
                v_from := p_hp_from[h];  v_to := p_hp_from[h + 1] - 1;
                g := p_h_gpus[h];  c := p_h_cpus[h];  m := p_h_mems[h];
            end if;
            for q in v_from..v_to loop
                if h > 1000000 then
                    x := p_al_node[q];  g := p_al_gpus[q];  c := p_al_cpus[q];  m := p_al_mems[q];
                else
                    continue when not p_pt_pin[q];
                    x := p_pt_node[q];
                end if;
                gr := p_group[x];
                continue when not v_usable[gr] or not coalesce(p_allow[x], true);
                if g < 0 then
                    v_gpus[x] := v_gpus[x] + sign * p_group_gpus[gr];  v_cpus[x] := v_cpus[x] + sign * p_group_cpus[gr];
                    v_mems[x] := v_mems[x] + sign * p_group_mems[gr];
                else
                    v_gpus[x] := v_gpus[x] + sign * g;  v_cpus[x] := v_cpus[x] + sign * c;
                    v_mems[x] := v_mems[x] + sign * m;
                end if;
                v_n := v_n + 1;  v_touched[v_n] := x;
            end loop;
            e := e + 1;
        end loop;
    end loop;
end;
$$;
