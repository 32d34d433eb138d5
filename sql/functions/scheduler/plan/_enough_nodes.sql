-- odc._enough_nodes: the first domain in which enough nodes fit.
-- Arguments  p_list        the nodes that fit;  p_counts  per domain, from 0: how many
--            p_domains     per group;  p_count  number of nodes wanted
--            p_blocks, p_blocks_most  per node: topology block; maximum number of blocks; null: any
-- Returns    the domain; null: none
create or replace function odc._enough_nodes(
    p_list integer[], p_counts integer[], p_node_groups integer[], p_domains integer[], p_count integer,
    p_blocks integer[], p_blocks_most integer)
returns integer
language plpgsql immutable set search_path = odc, pg_temp as $$
begin
    if p_blocks_most is null then
        return array_position(array(select n >= p_count from unnest(p_counts) with ordinality as u (n, o) order by o), true) - 1;
    end if;
    return (select min(u.domain)
              from (select b.domain, sum(b.n) as n
                      from (select p_domains[p_node_groups[l.node]] as domain, count(*) as n,
                                   row_number() over (partition by p_domains[p_node_groups[l.node]] order by count(*) desc) as place
                              from unnest(p_list) as l (node)
                             group by 1, p_blocks[l.node]) as b
                     where b.place <= p_blocks_most
                     group by b.domain) as u
             where u.n >= p_count);
end;
$$;
