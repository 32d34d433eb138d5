-- odc.see_groups: store what AWS and the cluster report about elastic groups.
-- Arguments  p_groups  array of {name, gpu_type, min_nodes, max_nodes, desired, cooldown_s, idle_s, boot_s, features, zone,
--                      efa_domain, instances, problem, failure, failed_at}; all groups. instances: ids, without those that
--                      are ending; problem: why its tags cannot be used; failure: why its newest launch failed
--            p_nodes   array of {name, instance_id}: the cluster's nodes
-- Returns    groups that are ignored, and why
-- Locks      term for key share; the turn; rows of these tables, node by name, node_free
-- Raises     OD020 LeadershipLost
create or replace function odc.see_groups(p_term bigint, p_groups jsonb, p_nodes jsonb, p_now timestamptz)
returns table (group_name text, problem text)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    -- A group that is no longer elastic keeps its nodes.
    perform _keep_instances(array(select i.instance_id from elastic_instance as i
                                   where not exists (select from _seen_groups(p_groups) as s
                                                      where s.name = i.group_name and s.problem is null)), p_now);
    delete from elastic_group as g
     where not exists (select from _seen_groups(p_groups) as s where s.name = g.name and s.problem is null);
    insert into elastic_group as g (name, gpu_type, gpus, cpus, mem_mib, tmp_mib, zone, efa_domain, features, min_nodes,
                                    max_nodes, cooldown, idle, boot, desired)
    -- The system and DaemonSets need a part of a node: a tenth of it until a node is known.
    select s.name, s.gpu_type, t.gpus_per_node, greatest(1, t.cpus_per_node * 9 / 10), t.mem_per_node_mib / 10 * 9 + 1, 0,
           s.zone, s.efa_domain, s.features, s.min_nodes, s.max_nodes, s.cooldown, s.idle, s.boot, s.desired
      from _seen_groups(p_groups) as s join gpu_type as t on t.name = s.gpu_type
     where s.problem is null
     order by s.name
        on conflict (name) do update
       set min_nodes = excluded.min_nodes, max_nodes = excluded.max_nodes, cooldown = excluded.cooldown, idle = excluded.idle,
           boot = excluded.boot, desired = excluded.desired,
           learned = g.learned and g.gpu_type = excluded.gpu_type, gpu_type = excluded.gpu_type,
           gpus = case when g.learned and g.gpu_type = excluded.gpu_type then g.gpus else excluded.gpus end,
           cpus = case when g.learned and g.gpu_type = excluded.gpu_type then g.cpus else excluded.cpus end,
           mem_mib = case when g.learned and g.gpu_type = excluded.gpu_type then g.mem_mib else excluded.mem_mib end,
           features = case when g.learned and g.gpu_type = excluded.gpu_type then g.features else excluded.features end,
           -- A request that was done, or is too old to be repeated.
           wanted = case when g.wanted <> excluded.desired and g.wanted between excluded.min_nodes and excluded.max_nodes
                              and g.wanted_at > p_now - interval '10 minutes' then g.wanted end;
    perform _see_instances(p_groups, p_nodes, p_now);
    perform _judge_launches(p_groups, p_now);
    return query select s.name, s.problem from _seen_groups(p_groups) as s where s.problem is not null order by s.name;
end;
$$;
