-- odc._follows_inventory: whether the inventory sets a node's state, rather than an operator.
-- A declared node that is not in the inventory stays UP while reason_by names the operator who created or resumed it.
-- Arguments  p_listed  whether the inventory has it: then it is no longer the operator's, nor deleted
--            p_keep    false: nodes that are not in the inventory go DOWN even if an operator declared them
create or replace function odc._follows_inventory(p_node odc.node, p_listed boolean, p_keep boolean)
returns boolean
language sql stable
begin atomic
    select p_node.reason_by is null
           or exists (select from odc.node_quarantine as q where q.node_id = p_node.id and q.drained)
           or p_node.state = 'UP' and (p_listed or not p_keep)
           or p_listed and p_node.declared and p_node.state = 'DOWN'
              and exists (select from odc.elastic_gone as e where e.node_id = p_node.id);
end;
