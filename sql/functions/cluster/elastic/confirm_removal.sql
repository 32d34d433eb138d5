-- odc.confirm_removal: call it right before AWS is asked to end an instance.
-- Returns    whether the node may be removed: it is drained and unused. It cannot be resumed from then on. If not, it
--            returns to use
-- Locks      term for key share; the turn; elastic_instance, node by name, node_free
-- Raises     OD020 LeadershipLost
create or replace function odc.confirm_removal(p_term bigint, p_instance_id text, p_now timestamptz)
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    if exists (select from elastic_instance as i where i.instance_id = p_instance_id and i.state = 'SENT') then
        return true;
    end if;
    if not _may_leave(p_instance_id) then
        perform _keep_instances(array[p_instance_id], p_now);
        return false;
    end if;
    update elastic_instance set state = 'SENT' where instance_id = p_instance_id and state = 'LEAVING';
    return found;
end;
$$;
