-- odc.end_canary: record the result of a canary: its node starts jobs again, or is tested again later, with twice the
-- delay each time, at most four hours. A canary that is no longer expected changes nothing.
-- Arguments  p_told  its output
-- Locks      the turn; node_quarantine, node, node_free
-- Raises     OD020 LeadershipLost
create or replace function odc.end_canary(p_term bigint, p_number integer, p_passed boolean, p_told text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_node_id integer;
    v_told    text := left(regexp_replace(trim(p_told), '\s+', ' ', 'g'), 300);
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    select q.node_id into v_node_id from node_quarantine as q where q.canary = p_number;
    if v_node_id is null then
        return;
    end if;
    perform from node where id = v_node_id for update;
    if p_passed then
        perform _return_nodes(array[v_node_id], jsonb_build_object('why', 'its canary succeeded', 'canary', v_told), p_now);
        return;
    end if;
    update node_quarantine as q
       set canary = null, canary_until = null, failed = q.failed + 1,
           try_at = p_now + least(interval '4 hours', interval '10 minutes' * (1 << least(q.failed + 1, 10))),
           reason = format('quarantined: %s; its canary failed%s: %s', q.evidence,
                           case when q.failed > 0 then format(' %s times', q.failed + 1) else '' end, v_told)
     where q.node_id = v_node_id;
    update node as n set reason = q.reason
      from node_quarantine as q
     where q.node_id = n.id and n.id = v_node_id and n.state = 'DRAIN' and n.reason_by = 'odcd';
    insert into event (at, kind, actor, node_id, detail)
    select p_now, 'canary_failed', 'odcd', q.node_id, jsonb_build_object('canary', v_told, 'failed', q.failed, 'next_at', _iso(q.try_at))
      from node_quarantine as q where q.node_id = v_node_id;
    perform _wake();
end;
$$;
