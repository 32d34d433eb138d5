-- odc._free_gang: the cheapest jobs to end so that a gang fits: p_count nodes of one domain. A job on several nodes ends on
-- all of them and costs once.
-- If no job is on two of the nodes, it takes the cheapest nodes of each domain, which is exact. Otherwise it takes the
-- better of two greedy choices, each made minimal: the cheapest nodes; or all jobs, minus those not needed, dearest
-- first. With few jobs it also runs a full search. The returned set always needs each of its jobs.
-- Arguments  p_domain        per node
--            p_lack_from     per node, and one more: its first row of p_lack_*, the missing amounts, as for _free_node
--            p_on_from       per node, and one more: its first row of p_on_*, jobs in order and their amounts there
--            p_ends, p_costs per job, in order of cost
--            p_below         a set that costs at least this much is of no use; null: no limit
-- Returns    positions of jobs, ascending; null: there is no such set
create or replace function odc._free_gang(
    p_count integer, p_domain integer[],
    p_lack_from integer[], p_lack_at bigint[], p_lack_gpus integer[], p_lack_cpus integer[], p_lack_mems integer[],
    p_on_from integer[], p_on_job integer[], p_on_gpus integer[], p_on_cpus integer[], p_on_mems integer[],
    p_ends bigint[], p_costs bigint[], p_below bigint)
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_max_jobs  constant integer := 16;     -- a full search of more jobs would take too long
    v_max_steps constant integer := 5000;
    v_nodes integer := cardinality(p_domain);  v_jobs integer := coalesce(cardinality(p_costs), 0);
    v_spans boolean;  v_node_cost bigint[];  v_node_jobs text[];  v_node_count integer[];
    v_best integer[];  v_best_cost bigint := coalesce(p_below, 9223372036854775807);
    -- jobs: their rows of p_on_*;  rows: their node
    v_rows_from integer[];  v_rows integer[];  v_node integer[];
    -- of the current domain, with the jobs taken so far gone
    v_gpus integer[];  v_cpus integer[];  v_mems integer[];  v_lacking integer[];  v_fit integer;  v_taken boolean[];
    v_list integer[];  v_way integer;  v_cost bigint;  v_count integer;  v_steps integer;  v_stack integer[];
    v_pruning boolean;  v_search boolean;
    v_domain integer;  v_place integer;  v_next integer;  v_job integer;  v_row integer;  v_sign integer;  v_was integer;
    v_lacked boolean;
begin
    select exists (select from unnest(p_on_job) as u (job) group by u.job having count(*) > 1) into v_spans;
    v_spans := v_spans and p_count > 1;
    select c.costs, c.counts, c.jobs into v_node_cost, v_node_count, v_node_jobs
      from _node_costs(p_count, p_lack_from, p_lack_at, p_lack_gpus, p_lack_cpus, p_lack_mems,
                       p_on_from, p_on_job, p_on_gpus, p_on_cpus, p_on_mems, p_ends, p_costs, v_best_cost) as c;
    select array_agg(u.o order by u.job, u.o) into v_rows from unnest(p_on_job) with ordinality as u (job, o);
    select array_agg(f.at order by f.job) into v_rows_from
      from (select g.job, 1 + (select count(*) from unnest(p_on_job) as u (job) where u.job < g.job)::integer as at
              from generate_series(1, v_jobs + 1) as g (job)) as f;
    select array_agg(u.x::integer order by g.o) into v_node
      from unnest(p_on_from[:v_nodes]) with ordinality as u (at, x)
     cross join lateral generate_series(u.at, p_on_from[u.x + 1] - 1) as g (o);

    foreach v_domain in array array(
        select u.d from unnest(p_domain, v_node_cost) as u (d, cost) where u.cost is not null
         group by u.d having count(*) >= p_count order by u.d)
    loop
        <<ways>>
        for v_way in 1..case when v_spans then 3 else 1 end loop
            -- Where to begin: with the jobs of the cheapest nodes; with all of the domain; with none, for the full search.
            if v_way = 1 then
                select coalesce(array_agg(distinct t.job::integer), '{}') into v_list
                  from (select u.jobs
                          from unnest(p_domain, v_node_cost, v_node_count, v_node_jobs) with ordinality
                               as u (d, cost, count, jobs, x)
                         where u.d = v_domain and u.cost is not null
                         order by u.cost, u.count, u.jobs, u.x
                         limit p_count) as s
                 cross join lateral regexp_split_to_table(s.jobs, ',') as t (job)
                 where t.job <> '';
                if not v_spans then
                    select coalesce(sum(p_costs[u.j]), 0) into v_cost from unnest(v_list) as u (j);
                    if v_cost < v_best_cost then
                        v_best := v_list;  v_best_cost := v_cost;
                    end if;
                    exit ways;
                end if;
            elsif v_way = 2 then
                select array_agg(distinct p_on_job[u.o]) into v_list
                  from unnest(v_node) with ordinality as u (x, o)
                 where p_domain[u.x] = v_domain and v_node_cost[u.x] is not null;
            end if;
            v_search := v_way = 3;
            exit ways when v_search and cardinality(v_list) > v_max_jobs;

            v_gpus := p_lack_gpus;  v_cpus := p_lack_cpus;  v_mems := p_lack_mems;
            v_taken := array_fill(false, array[v_jobs]);
            v_fit := 0;  v_cost := 0;  v_count := 0;  v_steps := 0;
            for v_place in 1..v_nodes loop
                v_lacking[v_place] := p_lack_from[v_place + 1] - p_lack_from[v_place];
                v_fit := v_fit + (v_lacking[v_place] = 0 and p_domain[v_place] = v_domain)::integer;
            end loop;
            v_stack := '{}';  v_pruning := false;  v_next := 0;
            loop
                -- Which job to take (1) or give back (-1) next?
                if v_search then
                    v_steps := v_steps + 1;
                    exit when v_steps > v_max_steps;
                    if v_fit >= p_count and (v_cost < v_best_cost or v_cost = v_best_cost and v_count < cardinality(v_best)) then
                        v_best := array(select v_list[u.i] from unnest(v_stack) as u (i));  v_best_cost := v_cost;
                    end if;
                    if v_fit < p_count and v_next < cardinality(v_list)
                       and (v_cost + p_costs[v_list[v_next + 1]] < v_best_cost
                            or v_cost + p_costs[v_list[v_next + 1]] = v_best_cost and v_count + 1 < cardinality(v_best)) then
                        v_next := v_next + 1;  v_job := v_list[v_next];  v_sign := 1;
                        v_stack := v_stack || v_next;
                    else
                        exit when v_count = 0;
                        v_next := v_stack[v_count];  v_job := v_list[v_next];  v_sign := -1;
                        v_stack := v_stack[:v_count - 1];
                    end if;
                elsif v_pruning and v_fit < p_count then
                    v_sign := 1;
                elsif v_pruning then
                    v_next := v_next - 1;
                    exit when v_next = 0;
                    v_job := v_list[v_next];  v_sign := -1;
                else
                    v_next := v_next + 1;
                    if v_next > cardinality(v_list) then
                        exit when v_fit < p_count;
                        v_pruning := true;
                        continue;
                    end if;
                    v_job := v_list[v_next];  v_sign := 1;
                end if;

                v_taken[v_job] := v_sign > 0;
                v_cost := v_cost + v_sign * p_costs[v_job];  v_count := v_count + v_sign;
                for v_entry in v_rows_from[v_job]..v_rows_from[v_job + 1] - 1 loop
                    v_row := v_rows[v_entry];  v_place := v_node[v_row];
                    continue when p_domain[v_place] <> v_domain;
                    v_was := v_lacking[v_place];
                    for v_lack in p_lack_from[v_place]..p_lack_from[v_place + 1] - 1 loop
                        continue when p_ends[v_job] <= p_lack_at[v_lack];
                        v_lacked := v_gpus[v_lack] > 0 or v_cpus[v_lack] > 0 or v_mems[v_lack] > 0;
                        v_gpus[v_lack] := v_gpus[v_lack] - v_sign * p_on_gpus[v_row];
                        v_cpus[v_lack] := v_cpus[v_lack] - v_sign * p_on_cpus[v_row];
                        v_mems[v_lack] := v_mems[v_lack] - v_sign * p_on_mems[v_row];
                        v_lacking[v_place] := v_lacking[v_place] - v_lacked::integer
                                              + (v_gpus[v_lack] > 0 or v_cpus[v_lack] > 0 or v_mems[v_lack] > 0)::integer;
                    end loop;
                    v_fit := v_fit + (v_lacking[v_place] = 0)::integer - (v_was = 0)::integer;
                end loop;
            end loop;
            if v_pruning and (v_cost < v_best_cost or v_cost = v_best_cost and v_count < cardinality(v_best)) then
                v_best := array(select u.j from unnest(v_list) as u (j) where v_taken[u.j]);  v_best_cost := v_cost;
            end if;
        end loop ways;
    end loop;
    return case when v_best is not null then array(select u.j from unnest(v_best) as u (j) order by u.j) end;
end;
$$;
