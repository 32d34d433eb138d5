-- odc.shrink_groups: drain nodes that have been empty for long, so that they can be removed. A node stays if it has an
-- allocation or a pod, if a job is planned on it or a booking includes it, and if its group would fall below its minimum.
-- Returns    names of the nodes that are drained
-- Locks      term for key share; the turn; elastic_group, elastic_instance, node by name, node_free
-- Raises     OD020 LeadershipLost
create or replace function odc.shrink_groups(p_term bigint, p_now timestamptz)
returns setof text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_nodes integer[];
begin
    perform _hold_term(p_term);
    if not exists (select from elastic_instance as i join elastic_group as g on g.name = i.group_name
                    where i.state = 'IN' and i.busy_at + g.idle <= p_now) then
        return;
    end if;
    perform _take_turn(p_now);
    with idle as (
        select i.node_id, i.group_name, row_number() over (partition by i.group_name order by i.busy_at, i.instance_id) as number
          from elastic_instance as i
          join elastic_group as g on g.name = i.group_name
          join node as n on n.id = i.node_id
          join node_free as f on f.node_id = n.id
         where i.state = 'IN' and i.busy_at + g.idle <= p_now and (i.keep_until is null or i.keep_until <= p_now)
           -- A group that is to grow keeps what it has.
           and g.wanted is null
           and not exists (select from elastic_need as e where e.group_name = g.name)
           and n.state = 'UP' and f.jobs = 0 and f.ended = i.ended
           and n.foreign_cpus = 0 and n.foreign_gpu_mask = 0 and n.foreign_mem_mib = 0
           and not exists (select from allocation as a where a.node_id = n.id)
           and not _is_spoken_for(n.id, n.name)
    ), spare as (
        -- Those on their way out count as desired until AWS has ended them.
        select g.name, least(g.desired, count(i.instance_id)) - count(*) filter (where i.state <> 'IN') - g.min_nodes as nodes
          from elastic_group as g left join elastic_instance as i on i.group_name = g.name
         group by g.name
    )
    select array_agg(i.node_id order by i.node_id) into v_nodes
      from idle as i join spare as s on s.name = i.group_name where i.number <= s.nodes;
    if v_nodes is null then
        return;
    end if;

    perform from node where id = any (v_nodes) order by name for update;
    update elastic_instance set state = 'LEAVING' where node_id = any (v_nodes);
    update node set state = 'DRAIN', reason = 'its group removes it, because it is empty', reason_by = 'odcd', state_at = p_now
     where id = any (v_nodes);
    insert into event (at, kind, actor, node_id, detail)
    select p_now, 'node_drain', 'odcd', n.id, jsonb_build_object('reason', n.reason)
      from node as n where n.id = any (v_nodes) order by n.id;
    perform _regroup_nodes();
    perform _wake();
    return query select n.name from node as n where n.id = any (v_nodes) order by n.name;
end;
$$;
