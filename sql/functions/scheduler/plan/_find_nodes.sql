-- odc._find_nodes: nodes on which a job can start now, fullest first (emptiest: partition.placement).
-- It goes through the lists of _free_lists, level by level. Of an alternative, groups without GPUs come first, then those
-- with; a list is skipped if its bit is not set. A node is taken if the amounts are free and the job avoids its points.
-- Arguments  p_free, p_points, p_protected  see ../README.md
--            p_node_groups, p_allow  per node: group; the job's lists allow it (p_allow null: all)
--            p_group_*      per group: amounts of a node, EFA domain;  p_max_level
--            p_alt_from, p_alt_to  alternatives; the first that has enough nodes is used
--            p_alt_spreads, p_alt_words  per alternative: emptiest first; its groups (see _group_words)
--            p_gpus … p_exclusive  what the job takes of a node;  p_limit_us, p_booking  as for _fits_beside_points
--            p_domain       only nodes of this EFA domain; 0: only nodes that need none; null: all
--            p_want         number of nodes;  p_found_before  nodes that an earlier search of this job found
-- Returns    see picked_nodes; picks: at most p_want
create or replace function odc._find_nodes(
    p_free bigint[], p_points bigint[], p_protected bigint[], p_node_groups integer[], p_allow boolean[],
    p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[], p_group_domains integer[], p_max_level integer,
    p_alt_from integer, p_alt_to integer, p_alt_spreads boolean[], p_alt_words bigint[],
    p_gpus integer, p_cpus integer, p_mem integer, p_exclusive boolean, p_limit_us bigint, p_booking integer,
    p_domain integer, p_want integer, p_found_before integer[])
returns odc.picked_nodes
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_far constant bigint := 8000000000000000000;
    v_nodes constant integer := cardinality(p_node_groups);
    v_words constant integer := (cardinality(p_group_gpus) + 59) / 60;
    v_filled constant integer := 7 * v_nodes + 68 * cardinality(p_group_gpus) + 1;
    v_lines constant integer := (p_max_level - p_gpus + 1) * v_words;  -- a line: the word of some groups at one level
    v_line integer;  v_level integer;  v_bits bigint;  v_group integer;  v_node integer;  v_next_node integer;
    v_got integer := 0;  v_beside record;  v_tried integer[];
    v_picks integer[] := '{}';  v_alternative integer;  v_blocked_at bigint := -1;  v_points bigint[];  v_protected bigint[];
begin
    -- Halves of alternatives: the groups without GPUs, then those with.
    for v_half in 2 * p_alt_from - 2..2 * p_alt_to - 1 loop
        v_tried := case when v_half % 2 = 1 then v_tried end;
        continue when v_words = 1 and p_alt_words[v_half + 1] = 0;
        v_alternative := v_half / 2 + 1;  v_line := -1;  v_bits := 0;
        loop
            while v_bits = 0 and v_line < v_lines - 1 loop
                v_line := v_line + 1;
                v_level := v_line / v_words;
                v_level := case when p_alt_spreads[v_alternative] then p_max_level - v_level else p_gpus + v_level end;
                v_bits := p_free[v_filled + v_level * v_words + v_line % v_words]
                          & p_alt_words[v_half * v_words + v_line % v_words + 1];
            end loop;
            exit when v_bits = 0;
            v_group := v_line % v_words * 60 + _lowest_bit(v_bits);
            v_bits := v_bits & (v_bits - 1);
            continue when p_domain > 0 and p_group_domains[v_group] <> p_domain;
            continue when p_domain = 0 and p_group_domains[v_group] > 0 and (p_exclusive or p_gpus = p_group_gpus[v_group]);
            v_next_node := p_free[7 * v_nodes + 64 * v_group - 63 + v_level];
            while v_next_node > 0 loop
                v_node := v_next_node;
                v_next_node := p_free[5 * v_nodes + v_node];
                continue when p_free[v_nodes + v_node] < p_gpus or p_free[2 * v_nodes + v_node] < p_cpus
                              or p_free[3 * v_nodes + v_node] < p_mem or (p_exclusive and p_free[4 * v_nodes + v_node] > 0)
                              or not (p_allow is null or p_allow[v_node]);
                if p_points[v_node] > 0 or p_booking is not null then
                    v_beside := _fits_beside_points(
                        p_points, p_protected, v_tried, v_node, p_gpus, p_cpus, p_mem, p_exclusive, p_limit_us, p_booking,
                        v_picks, p_found_before, p_node_groups, p_group_gpus, p_group_cpus, p_group_mems);
                    v_tried := v_beside.tried;
                    if v_beside.points is not null then
                        p_points := v_beside.points;  v_points := p_points;
                    end if;
                    if v_beside.protected is not null then
                        p_protected := v_beside.protected;  v_protected := p_protected;
                    end if;
                    continue when v_beside.blocked_at is null;
                    if v_beside.blocked_at < v_far then
                        v_blocked_at := greatest(v_blocked_at, v_beside.blocked_at);
                        continue;
                    end if;
                end if;
                v_got := v_got + 1;
                v_picks[v_got] := v_node;
                if v_got = p_want then
                    return (v_picks, v_alternative, v_blocked_at, v_points, v_protected, null, null, null)::picked_nodes;
                end if;
            end loop;
        end loop;
    end loop;
    return (v_picks, v_alternative, v_blocked_at, v_points, v_protected, null, null, null)::picked_nodes;
end;
$$;
