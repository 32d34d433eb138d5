-- odc._return_nodes: let quarantined nodes start jobs again; they are judged only by ends from now on.
-- Arguments  p_detail  of the event
-- Locks      the caller holds the turn; node by name, node_free
create or replace function odc._return_nodes(p_node_ids integer[], p_detail jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    if p_node_ids is null then
        return;
    end if;
    perform from node where id = any (p_node_ids) order by name for update;
    -- A cordoned or unavailable node stays so until the inventory reports otherwise.
    update node as n set state = 'UP', reason = null, reason_by = null, state_at = p_now
      from node_quarantine as q
     where q.node_id = n.id and n.id = any (p_node_ids) and q.drained and n.state = 'DRAIN' and n.reason_by = 'odcd';
    with back as (
        delete from node_quarantine as q where q.node_id = any (p_node_ids) returning q.node_id, q.drained
    )
    insert into event (at, kind, actor, node_id, detail)
    select p_now, 'node_returned', 'odcd', b.node_id, p_detail from back as b where b.drained order by b.node_id;
    delete from node_strike as s where s.node_id = any (p_node_ids);
    update node_free as f set ended = 0 where f.node_id = any (p_node_ids) and f.ended > 0;
    perform _regroup_nodes();
    perform _wake();
end;
$$;
