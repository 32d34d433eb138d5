-- odc._see_instances: forget instances that AWS no longer lists, add new ones, and record which nodes are in use.
-- Arguments  as see_groups
-- Locks      the caller holds the turn; rows of these tables, node by name, node_free
create or replace function odc._see_instances(p_groups jsonb, p_nodes jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_gone integer[];
begin
    with gone as (
        delete from elastic_instance as i
         where not exists (select from _seen_groups(p_groups) as s where s.name = i.group_name and i.instance_id = any (s.instances))
        returning i.node_id
    )
    select array_agg(g.node_id) into v_gone from gone as g where g.node_id is not null;
    if v_gone is not null then
        insert into elastic_gone select unnest(v_gone) on conflict do nothing;
        perform from node where id = any (v_gone) order by name for update;
        -- From here on, the inventory sets its state: while the cluster has the node, it is cordoned.
        update node set state = 'DOWN', reason = 'its group has removed it', reason_by = null, state_at = p_now
         where id = any (v_gone) and state = 'DRAIN' and reason_by = 'odcd'
           and not exists (select from node_quarantine as q where q.node_id = node.id and q.drained);
        perform _regroup_nodes();
    end if;

    with new as (
        insert into elastic_instance (instance_id, group_name, seen_at, busy_at)
        select u.id, s.name, p_now, p_now from _seen_groups(p_groups) as s, unnest(s.instances) as u (id)
         where s.problem is null
         order by u.id
            on conflict do nothing
        returning group_name
    )
    update elastic_group as g set failures = 0, failure = null, retry_at = null
      from new as w where w.group_name = g.name and g.failures > 0;
    -- A name can belong to another instance than before.
    update elastic_instance as i set node_id = null
      from jsonb_to_recordset(p_nodes) as r (name text, instance_id text)
      join node as n on n.name = r.name
     where i.node_id = n.id and i.instance_id <> r.instance_id;
    update elastic_instance as i set node_id = n.id, busy_at = p_now
      from jsonb_to_recordset(p_nodes) as r (name text, instance_id text)
      join node as n on n.name = r.name
     where i.instance_id = r.instance_id and i.node_id is distinct from n.id;
    delete from elastic_gone as e using elastic_instance as i where i.node_id = e.node_id and i.state = 'IN';

    update elastic_instance as i set busy_at = p_now, ended = f.ended
      from node as n join node_free as f on f.node_id = n.id
     where i.node_id = n.id and i.state = 'IN'
       and (n.state <> 'UP' or f.ended <> i.ended or f.jobs > 0 or n.foreign_cpus > 0 or n.foreign_gpu_mask <> 0
            or n.foreign_mem_mib > 0 or _is_spoken_for(n.id, n.name));
    update elastic_group as g
       set gpus = n.gpus, cpus = n.cpus, mem_mib = n.mem_mib, tmp_mib = n.tmp_mib, zone = n.zone, efa_domain = n.efa_domain,
           features = n.features, learned = true
      from (select distinct on (i.group_name) i.group_name, n.*
              from elastic_instance as i join node as n on n.id = i.node_id
             where n.state = 'UP'
             order by i.group_name, i.seen_at desc, i.instance_id) as n
     where n.group_name = g.name and n.gpu_type = g.gpu_type
       and (g.gpus, g.cpus, g.mem_mib, g.tmp_mib, g.zone, g.efa_domain, g.features, g.learned)
           is distinct from (n.gpus, n.cpus, n.mem_mib, n.tmp_mib, n.zone, n.efa_domain, n.features, true);
end;
$$;
