-- odc.set_node_state: drain, take down or resume nodes, by an operator.
-- Arguments  p_actor   {user, uid, operator}
--            p_state   UP, DRAIN (running jobs continue, none start) or DOWN
--            p_reason  shown with the node; required for DRAIN and DOWN
-- Returns    {"nodes": [names]} as JSON text
-- Locks      the turn; node by name, node_free
-- Raises     OD013 NotOwner, OD007 UnknownNode, OD010 BadRequest, OD012 WrongState: it is cordoned by its
--            cluster, or is being removed by its elastic group
create or replace function odc.set_node_state(
    p_actor jsonb, p_names text[], p_state text, p_reason text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_unknown text;
    v_known   text;
begin
    if not (p_actor ->> 'operator')::boolean then
        raise exception using errcode = 'OD013',
            message = format('user %s may not change nodes', p_actor ->> 'user'),
            hint = 'Only operators may do that: root, the account that runs odcd, and users named with odcd up --operator USER.';
    end if;
    if p_state not in ('UP', 'DRAIN', 'DOWN') then
        raise exception using errcode = 'OD010',
            message = format('node state "%s" does not exist', p_state),
            hint = 'Use UP, DRAIN or DOWN.';
    end if;
    if p_state <> 'UP' and coalesce(trim(p_reason), '') = '' then
        raise exception using errcode = 'OD010',
            message = format('a node cannot go to %s without a reason', p_state),
            hint = 'Give a reason: users whose jobs wait will read it.';
    end if;
    perform _take_turn(p_now);
    perform _check_nodes(p_names);
    perform from node where name = any (p_names) order by name for update;
    -- Not drained through odc: the cluster reports it as drained, and would report the same again.
    select string_agg(n.name, ', ' order by length(n.name), n.name), min(n.reason) into v_unknown, v_known
      from node as n where p_state = 'UP' and n.name = any (p_names) and n.state = 'DRAIN' and n.reason_by is null;
    if v_unknown is not null then
        raise exception using errcode = 'OD012',
            message = format('node %s is drained by the cluster: %s', v_unknown, v_known),
            hint = 'Resume it in the cluster: kubectl uncordon NODE, or remove its taint.';
    end if;
    select string_agg(n.name, ', ' order by length(n.name), n.name) into v_unknown
      from node as n join elastic_instance as i on i.node_id = n.id
     where p_state = 'UP' and n.name = any (p_names) and i.state = 'SENT';
    if v_unknown is not null then
        raise exception using errcode = 'OD012',
            message = format('node %s is being removed by its elastic group', v_unknown),
            hint = 'The group gets a new node when a job needs one: see `odcctl nodes --groups`.';
    end if;
    with changed as (
        update node
           set state = p_state::node_state, state_at = p_now,
               reason = case when p_state = 'UP' then null else p_reason end,
               -- A declared node that is not in the inventory stays up; see _follows_inventory.
               reason_by = case when p_state <> 'UP' or declared then p_actor ->> 'user' end
         where name = any (p_names)
        returning id
    ), ours as (
        -- The operator's decision takes precedence; resuming a node clears its failures.
        delete from node_quarantine as q using changed as c where q.node_id = c.id
    ), forgiven as (
        delete from node_strike as s using changed as c where s.node_id = c.id and p_state = 'UP'
    ), uncounted as (
        update node_free as f set ended = 0 from changed as c where f.node_id = c.id and p_state = 'UP' and f.ended > 0
    )
    insert into event (at, kind, actor, node_id, detail)
    select p_now, 'node_' || lower(p_state), p_actor ->> 'user', id,
           jsonb_strip_nulls(jsonb_build_object('reason', p_reason))
      from changed
     order by id;
    perform _regroup_nodes();
    perform _wake();
    return json_build_object('nodes', p_names)::text;
end;
$$;
