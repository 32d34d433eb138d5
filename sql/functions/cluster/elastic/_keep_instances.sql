-- odc._keep_instances: nodes that were to be removed return to use.
-- Locks      the caller holds the turn; elastic_instance, node by name, node_free
create or replace function odc._keep_instances(p_instance_ids text[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_nodes integer[] := array(select i.node_id from elastic_instance as i
                                where i.instance_id = any (p_instance_ids) and i.state <> 'IN' order by i.node_id);
begin
    if v_nodes = '{}' then
        return;
    end if;
    perform from node where id = any (v_nodes) order by name for update;
    update elastic_instance set state = 'IN', busy_at = p_now where node_id = any (v_nodes);
    delete from elastic_gone where node_id = any (v_nodes);
    -- Unless an operator has set its state; the next inventory corrects it if the cluster disagrees.
    with back as (
        update node set state = 'UP', reason = null, reason_by = null, state_at = p_now
         where id = any (v_nodes) and state = 'DRAIN' and reason_by = 'odcd'
           and not exists (select from node_quarantine as q where q.node_id = node.id and q.drained)
        returning id
    )
    insert into event (at, kind, actor, node_id, detail)
    select p_now, 'node_up', 'odcd', b.id, '{}' from back as b order by b.id;
    perform _regroup_nodes();
    perform _wake();
end;
$$;
