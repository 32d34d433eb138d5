-- odc._choose_blocks: of the nodes that fit a gang, choose nodes in the fewest topology blocks.
-- While more nodes are needed than any block has, take all of the fullest block. Then take the rest from the block with
-- the fewest nodes that are enough. Ties go to the lower block number.
-- Arguments  p_nodes  node positions, in order of preference;  p_blocks  per node position its block
--            p_want   maximum number of nodes;  p_blocks_most  maximum number of blocks; null: no limit
create or replace function odc._choose_blocks(p_nodes integer[], p_blocks integer[], p_want integer, p_blocks_most integer)
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_chosen integer[] := '{}';
    v_left   integer[] := p_nodes;
    v_need   integer;
    v_block  integer;
    v_used   integer := 0;
begin
    loop
        v_need := least(p_want - cardinality(v_chosen), cardinality(v_left));
        exit when v_need <= 0 or v_used = p_blocks_most;
        v_used := v_used + 1;
        select b.block into v_block
          from (select p_blocks[u.x] as block, count(*) as n from unnest(v_left) as u (x) group by 1) as b
         order by b.n < v_need, case when b.n >= v_need then b.n else -b.n end, b.block
         limit 1;
        v_chosen := v_chosen || array(
            select u.x from unnest(v_left) with ordinality as u (x, o) where p_blocks[u.x] = v_block order by o limit v_need);
        v_left := array(
            select u.x from unnest(v_left) with ordinality as u (x, o) where p_blocks[u.x] <> v_block order by o);
    end loop;
    return v_chosen;
end;
$$;
