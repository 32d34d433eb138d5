-- odc._group_sizes: how many nodes of each elastic group are on their way, and how many more it may have.
-- Returns    total: nodes that it has or has requested; coming: requested, and not ready yet; room: how many more may be
--            planned with; may_ask: whether more may be requested now
create or replace function odc._group_sizes(p_now timestamptz)
returns table (name text, total integer, coming integer, room integer, may_ask boolean)
language sql stable as $$
    select g.name, c.total,
           -- New nodes are down or cordoned by the cluster at first, until their devices are there. They are not waited for
           -- for long.
           (c.total - c.instances + c.starting)::integer,
           case when g.retry_at > p_now then 0 else greatest(0, g.max_nodes - c.total) end,
           (g.retry_at is null or g.retry_at <= p_now) and (g.grown_at is null or g.grown_at + g.cooldown <= p_now)
      from odc.elastic_group as g
     cross join lateral (
           select greatest(count(i.instance_id), case when g.retry_at > p_now then 0 else greatest(g.desired, g.wanted) end)::integer as total,
                  count(i.instance_id)::integer as instances,
                  count(*) filter (where i.state = 'IN' and i.seen_at > p_now - greatest(interval '15 minutes', 3 * g.boot)
                                     and (n.id is null or n.state <> 'UP' and n.reason_by is null))::integer as starting
             from odc.elastic_instance as i left join odc.node as n on n.id = i.node_id
            where i.group_name = g.name) as c
$$;
