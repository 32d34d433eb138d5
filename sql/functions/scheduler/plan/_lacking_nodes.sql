-- odc._lacking_nodes: the nodes on which a job fits at a moment, or would fit if other jobs were ended.
-- Arguments  p_at, p_free   the moment, and what is free then (see _free_at)
--            p_groups       groups that the job may use
--            p_count … p_booking, p_blocks, p_blocks_most  as for _earliest_start
--            p_on_first     per node and one more: its first row of the p_on_*: what each job uses there
--            p_places       per job: its place among those that can be ended; 0: it cannot
-- Returns    per node: its number, its domain (with p_blocks_most 1: domain and block); the first of its rows, per node
--            and one more: the amounts that are missing, at p_at or a later point; what the jobs use that can be ended
create or replace function odc._lacking_nodes(
    p_at bigint, p_free bigint[], p_groups integer[], p_node_groups integer[],
    p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[], p_group_domains integer[],
    p_count integer, p_gpus integer, p_cpus integer, p_mem integer, p_limit_us bigint, p_allow boolean[], p_booking integer,
    p_blocks integer[], p_blocks_most integer, p_points bigint[],
    p_on_first integer[], p_on_jobs integer[], p_on_gpus integer[], p_on_cpus integer[], p_on_mems integer[], p_places integer[],
    out nodes integer[], out domains integer[],
    out lack_from integer[], out lack_ats bigint[], out lack_gpus integer[], out lack_cpus integer[], out lack_mems integer[],
    out on_from integer[], out on_jobs integer[], out on_gpus integer[], out on_cpus integer[], out on_mems integer[])
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_nodes constant integer := cardinality(p_node_groups);
    v_usable boolean[] := array_fill(false, array[cardinality(p_group_gpus)]);
    v_count integer := 0;  v_lack integer := 0;  v_on integer := 0;
    v_group integer;  v_point integer;  v_holder integer;  v_inside boolean;  v_gpus integer;  v_cpus integer;  v_mem integer;
begin
    nodes := '{}';  domains := '{}';  lack_from := '{1}';  on_from := '{1}';
    lack_ats := '{}';  lack_gpus := '{}';  lack_cpus := '{}';  lack_mems := '{}';
    on_jobs := '{}';  on_gpus := '{}';  on_cpus := '{}';  on_mems := '{}';
    foreach v_group in array p_groups loop
        v_usable[v_group] := true;
    end loop;
    for node in 1..v_nodes loop
        v_group := p_node_groups[node];
        continue when not v_usable[v_group] or not coalesce(p_allow[node], true);
        v_lack := lack_from[v_count + 1] - 1;  v_on := on_from[v_count + 1] - 1;
        v_gpus := case when p_gpus < 0 then p_group_gpus[v_group] else p_gpus end - p_free[v_nodes + node];
        v_cpus := case when p_gpus < 0 then p_group_cpus[v_group] else p_cpus end - p_free[2 * v_nodes + node];
        v_mem := case when p_gpus < 0 then p_group_mems[v_group] else p_mem end - p_free[3 * v_nodes + node];
        if v_gpus > 0 or v_cpus > 0 or v_mem > 0 then
            continue when p_on_first[node] = p_on_first[node + 1];
            v_lack := v_lack + 1;
            lack_ats[v_lack] := p_at;  lack_gpus[v_lack] := v_gpus;  lack_cpus[v_lack] := v_cpus;  lack_mems[v_lack] := v_mem;
        end if;
        -- What is missing at later points that it would run into? It cannot end a booking.
        v_inside := p_booking is null;
        v_point := p_points[node];
        while v_point > 0 loop
            v_holder := p_points[v_point + 2];
            if v_holder = -p_booking then
                v_inside := v_inside or p_points[v_point + 3] <= p_at and p_points[v_point + 4] - p_limit_us >= p_at;
            elsif v_holder < 0 then
                exit when p_points[v_point + 4] > p_at and p_points[v_point + 3] - p_limit_us < p_at;
            elsif p_points[v_point + 8] = 1 and p_points[v_point + 3] > p_at and p_points[v_point + 3] - p_limit_us < p_at then
                exit when p_gpus < 0;
                v_gpus := p_gpus - p_points[v_point + 5];  v_cpus := p_cpus - p_points[v_point + 6];
                v_mem := p_mem - p_points[v_point + 7];
                if v_gpus > 0 or v_cpus > 0 or v_mem > 0 then
                    v_lack := v_lack + 1;
                    lack_ats[v_lack] := p_points[v_point + 3];
                    lack_gpus[v_lack] := v_gpus;  lack_cpus[v_lack] := v_cpus;  lack_mems[v_lack] := v_mem;
                end if;
            end if;
            v_point := p_points[v_point];
        end loop;
        continue when v_point > 0 or not v_inside;
        if v_lack >= lack_from[v_count + 1] then
            for i in p_on_first[node]..p_on_first[node + 1] - 1 loop
                if p_places[p_on_jobs[i]] > 0 then
                    v_on := v_on + 1;
                    on_jobs[v_on] := p_places[p_on_jobs[i]];  on_gpus[v_on] := p_on_gpus[i];
                    on_cpus[v_on] := p_on_cpus[i];  on_mems[v_on] := p_on_mems[i];
                end if;
            end loop;
            continue when v_on < on_from[v_count + 1];
        end if;
        v_count := v_count + 1;
        nodes[v_count] := node;  lack_from[v_count + 1] := v_lack + 1;  on_from[v_count + 1] := v_on + 1;
        domains[v_count] := case when p_count > 1 and (p_gpus < 0 or p_gpus = p_group_gpus[v_group])
                                 then p_group_domains[v_group] else 0 end
                            + case when p_blocks_most = 1 then 100000 * p_blocks[node] else 0 end;
    end loop;
end;
$$;
