-- odc._free_node: the cheapest jobs on one node to end so that a job gets the amounts it lacks there. Exact, by branch
-- and bound, unless the node has so many jobs that the steps run out: then the cheapest set found.
-- Arguments  p_at, p_gpus, p_cpus, p_mems  missing amounts, at one moment or several (microseconds); a job that would
--                           have ended by itself before that moment does not help
--            p_ends, p_costs, p_job_*  jobs: when they would end by themselves, cost of ending them now, their amounts;
--                           in order of cost
--            p_below        a set that costs at least this much is of no use; null: no limit
-- Returns    positions of jobs, ascending; empty: nothing is missing; null: there is no such set. Among sets of equal
--            cost, the one with the fewest jobs, then the one that comes first.
create or replace function odc._free_node(
    p_at bigint[], p_gpus integer[], p_cpus integer[], p_mems integer[],
    p_ends bigint[], p_costs bigint[], p_job_gpus integer[], p_job_cpus integer[], p_job_mems integer[], p_below bigint)
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_max_steps constant integer := 20000;
    v_jobs integer := coalesce(cardinality(p_costs), 0);
    v_best integer[];  v_best_cost bigint := coalesce(p_below, 9223372036854775807);  v_best_count integer := 0;
    v_taken integer[] := '{}';  v_count integer := 0;  v_cost bigint := 0;
    v_rest_gpus bigint[];  v_rest_cpus bigint[];  v_rest_mems bigint[];     -- total of the jobs from here on
    v_max_gpus integer[];  v_max_cpus integer[];                            -- maximum of any one of them
    v_next integer := 1;  j integer;  v_least integer;  v_steps integer := 0;
    v_gpus bigint;  v_cpus bigint;  v_mem bigint;  v_lower bigint;  v_enough boolean;
begin
    v_rest_gpus := array_fill(0::bigint, array[v_jobs + 1]);  v_rest_cpus := v_rest_gpus;  v_rest_mems := v_rest_gpus;
    v_max_gpus := array_fill(0, array[v_jobs + 1]);  v_max_cpus := v_max_gpus;
    for j in reverse v_jobs..1 loop
        v_rest_gpus[j] := v_rest_gpus[j + 1] + p_job_gpus[j];  v_rest_cpus[j] := v_rest_cpus[j + 1] + p_job_cpus[j];
        v_rest_mems[j] := v_rest_mems[j + 1] + p_job_mems[j];
        v_max_gpus[j] := greatest(v_max_gpus[j + 1], p_job_gpus[j]);
        v_max_cpus[j] := greatest(v_max_cpus[j + 1], p_job_cpus[j]);
    end loop;

    loop
        v_steps := v_steps + 1;
        -- The amounts still missing with these gone; at least v_least more jobs are needed.
        v_enough := true;  v_least := 0;
        for moment in 1..cardinality(p_at) loop
            v_gpus := p_gpus[moment];  v_cpus := p_cpus[moment];  v_mem := p_mems[moment];
            foreach j in array v_taken loop
                if p_ends[j] > p_at[moment] then
                    v_gpus := v_gpus - p_job_gpus[j];  v_cpus := v_cpus - p_job_cpus[j];  v_mem := v_mem - p_job_mems[j];
                end if;
            end loop;
            if v_gpus > 0 or v_cpus > 0 or v_mem > 0 then
                v_enough := false;
                if v_next > v_jobs or v_gpus > v_rest_gpus[v_next] or v_cpus > v_rest_cpus[v_next] or v_mem > v_rest_mems[v_next] then
                    v_least := v_jobs + 1;
                    exit;
                end if;
                v_least := greatest(v_least, 1, case when v_gpus > 0 then ((v_gpus + v_max_gpus[v_next] - 1) / v_max_gpus[v_next])::integer end,
                              case when v_cpus > 0 then ((v_cpus + v_max_cpus[v_next] - 1) / v_max_cpus[v_next])::integer end);
            end if;
        end loop;
        if v_enough then
            if v_cost < v_best_cost or v_cost = v_best_cost and v_best is not null and v_count < v_best_count then
                v_best := v_taken;  v_best_cost := v_cost;  v_best_count := v_count;
            end if;
        elsif v_next + v_least - 1 <= v_jobs then
            v_lower := v_cost;
            for j in v_next..v_next + v_least - 1 loop
                v_lower := v_lower + p_costs[j];
            end loop;
            if v_lower < v_best_cost or v_lower = v_best_cost and v_best is not null and v_count + v_least < v_best_count then
                v_count := v_count + 1;  v_taken[v_count] := v_next;  v_cost := v_cost + p_costs[v_next];
                v_next := v_next + 1;
                continue when v_steps < v_max_steps;
            end if;
        end if;
        -- Then try without the last job taken.
        exit when v_count = 0 or v_steps >= v_max_steps;
        v_next := v_taken[v_count];
        v_taken := v_taken[:v_count - 1];  v_count := v_count - 1;  v_cost := v_cost - p_costs[v_next];
        v_next := v_next + 1;
    end loop;
    return v_best;
end;
$$;
