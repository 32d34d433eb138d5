-- odc.note_removal: record that a node was removed, or why it is not.
-- Arguments  p_kept  why it stays; null: AWS ends the instance
-- Locks      term for key share; the turn; elastic_instance, elastic_group, node by name, node_free
-- Raises     OD020 LeadershipLost
create or replace function odc.note_removal(p_term bigint, p_instance_id text, p_kept text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    if p_kept is null then
        insert into event (at, kind, actor, node_id, detail)
        select p_now, 'node_removed', 'odcd', i.node_id, jsonb_build_object('group', i.group_name, 'instance', i.instance_id)
          from elastic_instance as i where i.instance_id = p_instance_id and i.state = 'SENT'
           and not exists (select from elastic_gone as e where e.node_id = i.node_id);
        insert into elastic_gone
        select i.node_id from elastic_instance as i where i.instance_id = p_instance_id and i.state = 'SENT'
            on conflict do nothing;
        return;
    end if;
    perform _keep_instances(array[p_instance_id], p_now);
    update elastic_instance set keep_until = p_now + interval '10 minutes' where instance_id = p_instance_id;
end;
$$;
