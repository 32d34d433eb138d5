-- odc._place_gang: nodes on which a gang can start now. Its nodes are of one partition, of one EFA domain if it takes
-- whole nodes of an EFA type, and in few topology blocks if it takes whole nodes or asks for that. It searches the
-- domains in the order of _choose_domain until it has the maximum number of nodes, and else takes the most it found.
-- Arguments  p_blocks       per node: topology block; null: unknown
--            p_alt_partitions, p_group_from, p_group_to, p_alt_groups  per alternative: partition, its groups
--            p_least, p_most  minimum and maximum number of nodes;  p_blocks_most  maximum number of blocks; null: any
--            the others     as for _find_nodes
-- Returns    see picked_nodes; picks: '{}' if there are not enough nodes; blocked_at: far if a node fits in some search
create or replace function odc._place_gang(
    p_free bigint[], p_points bigint[], p_protected bigint[], p_node_groups integer[], p_allow boolean[], p_blocks integer[],
    p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[], p_group_domains integer[], p_max_level integer,
    p_alt_from integer, p_alt_to integer, p_alt_spreads boolean[], p_alt_words bigint[],
    p_alt_partitions integer[], p_group_from integer[], p_group_to integer[], p_alt_groups integer[],
    p_gpus integer, p_cpus integer, p_mem integer, p_exclusive boolean, p_limit_us bigint, p_booking integer,
    p_least integer, p_most integer, p_blocks_most integer)
returns odc.picked_nodes
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_whole_at constant integer := 7 * cardinality(p_node_groups) + 64 * cardinality(p_group_gpus);
    v_found picked_nodes;  v_tried integer[];  v_domain integer;  v_gather boolean;  v_got integer;
    v_best integer[] := '{}';   -- the largest set found so far, smaller than p_most
    v_found_before integer[] := '{}';   -- the nodes of all such sets
    v_picks integer[];  v_alternative integer;  v_blocked_at bigint := -1;  v_points bigint[];  v_protected bigint[];
begin
    for v_alt in p_alt_from..p_alt_to loop
        exit when v_best <> '{}' and p_alt_partitions[v_alt] <> p_alt_partitions[v_alternative];
        v_alternative := v_alt;  v_tried := '{}';
        v_gather := p_blocks is not null
                    and (p_blocks_most is not null or p_exclusive
                         or (p_gpus > 0 and p_gpus = p_group_gpus[p_alt_groups[p_group_to[v_alt]]]));
        loop
            v_domain := _choose_domain(p_alt_groups[p_group_from[v_alt]:p_group_to[v_alt]], v_tried, p_exclusive, p_gpus, p_least,
                                       p_most, p_group_domains, p_group_gpus, p_free, v_whole_at);
            exit when v_domain < 0;
            v_tried := v_tried || v_domain;
            -- All nodes are collected if _choose_blocks will choose from them.
            v_found := _find_nodes(
                p_free, p_points, p_protected, p_node_groups, p_allow,
                p_group_gpus, p_group_cpus, p_group_mems, p_group_domains, p_max_level,
                v_alt, v_alt, p_alt_spreads, p_alt_words, p_gpus, p_cpus, p_mem, p_exclusive, p_limit_us, p_booking,
                v_domain, case when v_gather then 1000000 else p_most end, v_found_before);
            if v_found.points is not null then
                p_points := v_found.points;  v_points := p_points;
            end if;
            if v_found.protected is not null then
                p_protected := v_found.protected;  v_protected := p_protected;
            end if;
            v_picks := v_found.picks;  v_got := cardinality(v_picks);
            v_blocked_at := greatest(v_blocked_at, case when v_got > 0 then 8000000000000000000 else v_found.blocked_at end);
            if v_gather and v_got >= p_least then
                v_picks := _choose_blocks(v_picks, p_blocks, p_most, p_blocks_most);  v_got := cardinality(v_picks);
            end if;
            if v_got >= p_most then
                return (v_picks, v_alternative, v_blocked_at, v_points, v_protected, null, null, null)::picked_nodes;
            end if;
            if v_got >= p_least and v_got > cardinality(v_best) then
                v_best := v_picks;  v_found_before := v_found_before || v_picks;
            end if;
        end loop;
    end loop;
    return (v_best, v_alternative, v_blocked_at, v_points, v_protected, null, null, null)::picked_nodes;
end;
$$;
