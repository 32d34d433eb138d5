-- odc.leaving_nodes: nodes that are to be removed now. A node that an operator resumed, or that has an allocation, returns.
-- Locks      term for key share; the turn; elastic_instance, node by name, node_free
-- Raises     OD020 LeadershipLost
create or replace function odc.leaving_nodes(p_term bigint, p_now timestamptz)
returns table (instance_id text, node text, group_name text, sent boolean)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    perform _hold_term(p_term);
    if not exists (select from elastic_instance as i where i.state <> 'IN') then
        return;
    end if;
    perform _take_turn(p_now);
    perform _keep_instances(array(select i.instance_id from elastic_instance as i
                                   where i.state = 'LEAVING' and not _may_leave(i.instance_id)), p_now);
    return query
    select i.instance_id, n.name, i.group_name, i.state = 'SENT'
      from elastic_instance as i join node as n on n.id = i.node_id
     where i.state <> 'IN'
     order by i.instance_id;
end;
$$;
