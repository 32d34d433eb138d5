-- odc._plan_preempt: the cheapest running jobs to end, after their grace, so that a blocked job can start, and where.
-- A set is considered at the moment when the longest grace in it ends. The job must fit then, with the set gone, given
-- everything that _plan_protect considers: jobs that end before then, earlier protected jobs, bookings. A set with a job
-- that is not needed is rejected. If the job starts as soon without preemption, no job is ended. Jobs that are already
-- ending are waited for (_plan_releases).
-- Arguments  p_spare      do not end these: they are already gone, or end for other jobs
--            p_natural    when it would start if no job were ended; null: no end in sight
--            p_alt_from, p_alt_to  spans of p_alt_groups: the groups of each alternative
--            p_blocks, p_wish  per node its topology block; maximum number of blocks; null: any
--            the others   as for _plan_protect
-- Returns    victims: null if there is no such set; their costs, and when the grace of each is over; at: when the job
--            starts; fit: its nodes; then_*: the amounts free on them at that time
create or replace function odc._plan_preempt(
    p_now timestamptz, p_job_id bigint, p_qos_id integer, p_spare bigint[], p_natural bigint,
    p_node_ids integer[], p_group integer[], p_gpus integer[], p_cpus integer[], p_mems integer[],
    p_domain integer[], p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[],
    p_alt_from integer[], p_alt_to integer[], p_alt_groups integer[],
    p_blocks integer[], p_wish integer,
    p_k integer, p_g integer, p_c integer, p_m integer, p_limit bigint, p_allow boolean[], p_booking integer,
    p_rel_at bigint[], p_rel_node integer[], p_rel_gpus integer[], p_rel_cpus integer[], p_rel_mems integer[],
    p_ev_at bigint[], p_ev_ref integer[],
    p_st_from integer[], p_al_node integer[], p_al_gpus integer[], p_al_cpus integer[], p_al_mems integer[],
    p_hp_from integer[], p_h_gpus integer[], p_h_cpus integer[], p_h_mems integer[],
    p_pt_first integer[], p_pt_next integer[], p_pt_node integer[], p_pt_head integer[], p_pt_at bigint[],
    p_pt_end bigint[], p_pt_gpus integer[], p_pt_cpus integer[], p_pt_mems integer[], p_pt_pin boolean[],
    out victims bigint[], out costs bigint[], out ends bigint[], out cost bigint, out at bigint, out fit integer[],
    out then_gpus integer[], out then_cpus integer[], out then_mems integer[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_variable
declare
    v_jobs bigint[];  v_costs bigint[];  v_graces bigint[];  v_ends bigint[];
    v_on record;                -- what these jobs use: node, job, amounts, in order of node and job
    v_first integer[];          -- per node, and one more: its first row there
    v_gpus integer[];  v_cpus integer[];  v_mems integer[];
    v_usable boolean[];
    -- nodes where it fits at t or might; the missing amounts there; the jobs on them that could be ended
    v_nodes integer[];  v_domains integer[];
    v_lack_from integer[];  v_lack_at bigint[];  v_lack_gpus integer[];  v_lack_cpus integer[];  v_lack_mems integer[];
    v_on_from integer[];  v_on_job integer[];  v_on_gpus integer[];  v_on_cpus integer[];  v_on_mems integer[];
    v_can integer[];  v_can_ends bigint[];  v_can_costs bigint[];  v_place integer[];
    v_set integer[];  v_ok boolean;  v_fits integer[];
    n integer := cardinality(p_node_ids);
    t bigint;  r integer;  e integer;  x integer;  q integer;  h integer;  a integer;  gr integer;  i integer;  o integer;
    l integer;  v_from integer;  v_to integer;  g integer;  c integer;  m integer;  sign integer;
begin
    if exists (select from running as w where w.preempted_by = p_job_id) then
        return;
    end if;
    select array_agg(v.job_id), array_agg(v.cost), array_agg(v.grace), array_agg(v.own_end)
      into v_jobs, v_costs, v_graces, v_ends
      from _plan_victims(p_now, p_qos_id, p_spare) as v;
    if v_jobs is null then
        return;
    end if;
    select array_agg(u.x order by u.x, u.j) as x, array_agg(u.j order by u.x, u.j) as j,
           array_agg(u.gpus order by u.x, u.j) as gpus, array_agg(u.cpus order by u.x, u.j) as cpus,
           array_agg(u.mem_mib order by u.x, u.j) as mems
      into v_on
      from (select b.ord::integer as x, v.ord::integer as j, l.gpus, l.cpus, l.mem_mib
              from unnest(v_jobs) with ordinality as v (job_id, ord)
              join allocation as l on l.job_id = v.job_id
              join unnest(p_node_ids) with ordinality as b (id, ord) on b.id = l.node_id) as u;
    select array_agg(f.at order by f.x) into v_first
      from (select s.x, (1 + coalesce(sum(u.n), 0))::integer as at
              from generate_series(1, n + 1) as s (x)
              left join (select w.x, count(*) as n from unnest(v_on.x) as w (x) group by w.x) as u on u.x < s.x
             group by s.x) as f;

    <<moments>>
    foreach t in array array(select distinct u.t from unnest(v_graces) as u (t) order by u.t) loop
        exit when t >= p_natural;
        -- The amounts free at t.
        v_gpus := p_gpus;  v_cpus := p_cpus;  v_mems := p_mems;
        r := 1;
        while p_rel_at[r] <= t loop
            x := p_rel_node[r];
            v_gpus[x] := v_gpus[x] + p_rel_gpus[r];  v_cpus[x] := v_cpus[x] + p_rel_cpus[r];
            v_mems[x] := v_mems[x] + p_rel_mems[r];
            r := r + 1;
        end loop;
        e := 1;
        while p_ev_at[e] <= t loop
            h := abs(p_ev_ref[e]);  sign := case when p_ev_ref[e] < 0 or h > 1000000 then 1 else -1 end;
            if h > 1000000 then
                v_from := p_st_from[h - 1000000];  v_to := p_st_from[h - 1000000 + 1] - 1;
            else
                v_from := p_hp_from[h];  v_to := p_hp_from[h + 1] - 1;
            end if;
            for q in v_from..v_to loop
                if h > 1000000 then
                    x := p_al_node[q];  g := p_al_gpus[q];  c := p_al_cpus[q];  m := p_al_mems[q];
                else
                    continue when not p_pt_pin[q];
                    x := p_pt_node[q];  g := p_h_gpus[h];  c := p_h_cpus[h];  m := p_h_mems[h];
                    if g < 0 then
                        gr := p_group[x];  g := p_group_gpus[gr];  c := p_group_cpus[gr];  m := p_group_mems[gr];
                    end if;
                end if;
                v_gpus[x] := v_gpus[x] + sign * g;  v_cpus[x] := v_cpus[x] + sign * c;  v_mems[x] := v_mems[x] + sign * m;
            end loop;
            e := e + 1;
        end loop;
        -- The jobs that can be ended for a start at t.
        select array_agg(u.o::integer order by u.o), array_agg(u.until order by u.o), array_agg(u.cost order by u.o)
          into v_can, v_can_ends, v_can_costs
          from unnest(v_graces, v_ends, v_costs) with ordinality as u (grace, until, cost, o)
         where u.grace <= t and u.until > t;
        continue when v_can is null;
        v_place := array_fill(0, array[cardinality(v_jobs)]);
        for i in 1..cardinality(v_can) loop
            v_place[v_can[i]] := i;
        end loop;

        for a in 1..cardinality(p_alt_from) loop
            v_usable := array_fill(false, array[cardinality(p_group_gpus)]);
            foreach gr in array p_alt_groups[p_alt_from[a]:p_alt_to[a]] loop
                v_usable[gr] := true;
            end loop;
            v_nodes := '{}';  v_domains := '{}';  v_lack_from := '{1}';  v_on_from := '{1}';  l := 0;  o := 0;
            v_lack_at := '{}';  v_lack_gpus := '{}';  v_lack_cpus := '{}';  v_lack_mems := '{}';
            v_on_job := '{}';  v_on_gpus := '{}';  v_on_cpus := '{}';  v_on_mems := '{}';
            for x in 1..n loop
                gr := p_group[x];
                continue when not v_usable[gr] or not coalesce(p_allow[x], true);
                l := v_lack_from[cardinality(v_nodes) + 1] - 1;  o := v_on_from[cardinality(v_nodes) + 1] - 1;
                g := case when p_g < 0 then p_group_gpus[gr] else p_g end - v_gpus[x];
                c := case when p_g < 0 then p_group_cpus[gr] else p_c end - v_cpus[x];
                m := case when p_g < 0 then p_group_mems[gr] else p_m end - v_mems[x];
                if g > 0 or c > 0 or m > 0 then
                    continue when v_first[x] = v_first[x + 1];
                    l := l + 1;
                    v_lack_at[l] := t;  v_lack_gpus[l] := g;  v_lack_cpus[l] := c;  v_lack_mems[l] := m;
                end if;
                v_ok := p_booking is null;
                q := p_pt_first[x];
                while q > 0 loop
                    h := p_pt_head[q];
                    if h = -p_booking then
                        v_ok := v_ok or p_pt_at[q] <= t and p_pt_end[q] - p_limit >= t;
                    elsif h < 0 then
                        exit when p_pt_end[q] > t and p_pt_at[q] - p_limit < t;
                    elsif p_pt_pin[q] and p_pt_at[q] > t and p_pt_at[q] - p_limit < t then
                        exit when p_g < 0;
                        g := p_g - p_pt_gpus[q];  c := p_c - p_pt_cpus[q];  m := p_m - p_pt_mems[q];
                        if g > 0 or c > 0 or m > 0 then
                            l := l + 1;
                            v_lack_at[l] := p_pt_at[q];  v_lack_gpus[l] := g;  v_lack_cpus[l] := c;  v_lack_mems[l] := m;
                        end if;
                    end if;
                    q := p_pt_next[q];
                end loop;
                continue when q > 0 or not v_ok;
                if l >= v_lack_from[cardinality(v_nodes) + 1] then
                    for i in v_first[x]..v_first[x + 1] - 1 loop
                        if v_place[v_on.j[i]] > 0 then
                            o := o + 1;
                            v_on_job[o] := v_place[v_on.j[i]];  v_on_gpus[o] := v_on.gpus[i];
                            v_on_cpus[o] := v_on.cpus[i];  v_on_mems[o] := v_on.mems[i];
                        end if;
                    end loop;
                    continue when o < v_on_from[cardinality(v_nodes) + 1];
                end if;
                i := cardinality(v_nodes) + 1;
                v_nodes[i] := x;  v_lack_from[i + 1] := l + 1;  v_on_from[i + 1] := o + 1;
                v_domains[i] := case when p_k > 1 and (p_g < 0 or p_g = p_group_gpus[gr]) then p_domain[gr] else 0 end
                                + case when p_wish = 1 then 100000 * p_blocks[x] else 0 end;
            end loop;
            continue when cardinality(v_nodes) < p_k;
            v_set := _free_gang(p_k, v_domains, v_lack_from, v_lack_at, v_lack_gpus, v_lack_cpus, v_lack_mems,
                                v_on_from, v_on_job, v_on_gpus, v_on_cpus, v_on_mems, v_can_ends, v_can_costs, cost);
            continue when v_set is null;
            if v_set = '{}' then
                -- It can start then without ending any job.
                if at = t then
                    victims := null;
                end if;
                return;
            end if;
            -- The nodes that now fit; those freed for it first, so that nodes that are already free stay available to other jobs.
            with fits as (
                select u.i, u.x, u.d, count(b.job) as freed
                  from unnest(v_nodes, v_domains) with ordinality as u (x, d, i)
                  left join lateral (
                       select w.job from unnest(v_on_job[v_on_from[u.i]:v_on_from[u.i + 1] - 1]) as w (job)
                        where w.job = any (v_set)) as b on true
                 where not exists (
                       select from generate_series(v_lack_from[u.i], v_lack_from[u.i + 1] - 1) as k (l)
                        where exists (
                              select from (select coalesce(sum(v_on_gpus[w.o]), 0) as gpus, coalesce(sum(v_on_cpus[w.o]), 0) as cpus,
                                                  coalesce(sum(v_on_mems[w.o]), 0) as mems
                                             from generate_series(v_on_from[u.i], v_on_from[u.i + 1] - 1) as w (o)
                                            where v_on_job[w.o] = any (v_set) and v_can_ends[v_on_job[w.o]] > v_lack_at[k.l]) as s
                               where s.gpus < v_lack_gpus[k.l] or s.cpus < v_lack_cpus[k.l] or s.mems < v_lack_mems[k.l]))
                 group by u.i, u.x, u.d
            )
            select array_agg(s.x order by s.i) into v_fits
              from (select f.x, f.i from fits as f
                     where f.d = (select z.d from fits as z group by z.d having count(*) >= p_k order by sum(z.freed) desc, z.d limit 1)
                     order by f.freed = 0, f.i limit p_k) as s;
            assert cardinality(v_fits) = p_k, 'victims that do not suffice';
            -- More than one topology block only limits the result: no set is searched for that keeps within it.
            continue when p_wish < (select count(distinct p_blocks[u.x]) from unnest(v_fits) as u (x));
            fit := v_fits;  at := t;
            select array_agg(v_jobs[v_can[u.j]] order by u.j), array_agg(v_can_costs[u.j] order by u.j),
                   array_agg(v_graces[v_can[u.j]] order by u.j), sum(v_can_costs[u.j])
              into victims, costs, ends, cost
              from unnest(v_set) as u (j);
            select array_agg(v_gpus[u.x] + coalesce(s.gpus, 0) order by u.o), array_agg(v_cpus[u.x] + coalesce(s.cpus, 0) order by u.o),
                   array_agg(v_mems[u.x] + coalesce(s.mems, 0) order by u.o)
              into then_gpus, then_cpus, then_mems
              from unnest(fit) with ordinality as u (x, o)
              left join (select w.x, sum(v_on.gpus[w.o])::integer as gpus, sum(v_on.cpus[w.o])::integer as cpus,
                                sum(v_on.mems[w.o])::integer as mems
                           from unnest(v_on.x) with ordinality as w (x, o)
                          where v_jobs[v_on.j[w.o]] = any (victims)
                          group by w.x) as s on s.x = u.x;
        end loop;
    end loop moments;
end;
$$;
