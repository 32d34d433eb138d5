-- odc._is_gone: whether a node was deleted, or removed by its elastic group. Its row stays, for the jobs that ran there.
create or replace function odc._is_gone(p_node odc.node)
returns boolean
language sql stable
begin atomic
    select p_node.state = 'DOWN' and exists (select from odc.elastic_gone as e where e.node_id = p_node.id);
end;
