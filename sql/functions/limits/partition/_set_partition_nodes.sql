-- odc._set_partition_nodes: set the nodes of a partition.
-- Arguments  p_changes  {all_nodes: true} or {node_list: [names]}; neither: nothing changes
-- Locks      node_free rows whose group changes
-- Raises     OD007 UnknownNode, OD010 BadRequest
create or replace function odc._set_partition_nodes(p_id integer, p_changes jsonb)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_all   boolean := coalesce((p_changes ->> 'all_nodes')::boolean, false);
    v_names text[] := _words(p_changes -> 'node_list');
begin
    if not p_changes ?| '{all_nodes,node_list}' then
        return;
    end if;
    if v_all = (v_names is not null) then
        raise exception using errcode = 'OD010',
            message = 'a partition has either all nodes or a list of nodes',
            hint = 'Give one: --all-nodes, or --nodes with a list.';
    end if;
    perform _check_nodes(v_names);
    update partition set all_nodes = v_all where id = p_id;
    delete from partition_node where partition_id = p_id;
    insert into partition_node (partition_id, node_id)
    select p_id, n.id from node as n where n.name = any (v_names);
    perform _regroup_nodes();
end;
$$;
