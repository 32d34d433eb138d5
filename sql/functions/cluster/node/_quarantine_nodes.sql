-- odc._quarantine_nodes: quarantine nodes on which jobs keep failing, as far as the cap allows; only report the others.
-- At most a tenth of the nodes of a GPU type, but at least one, are quarantined at once; the worst come first.
-- Arguments  p_on        true: quarantine; false: end all quarantines; null: do nothing
--            p_canaries  false: no canary can test them, so an operator must resume them
-- Locks      node by name, node_free, of nodes that change
create or replace function odc._quarantine_nodes(p_on boolean, p_canaries boolean, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_wait constant interval := '10 minutes';
    v_bad  record;
    v_room boolean;
begin
    if p_on is null then
        return;
    elsif not p_on then
        perform _return_nodes((select array_agg(node_id) from node_quarantine), jsonb_build_object('why', 'quarantine is off'), p_now);
        return;
    end if;
    delete from node_strike where at < p_now - interval '24 hours';
    -- Nodes that were only reported may be reported again.
    delete from node_quarantine where not drained and since < p_now - interval '1 hour';
    if not exists (select from node_strike)
       or not exists (select from _judge_nodes(p_now) as j join node as n on n.id = j.node_id where j.eats and n.state = 'UP') then
        return;
    end if;
    perform from node order by name for update;
    for v_bad in
        select n.id, n.name, n.gpu_type, _evidence(j.gpu_type, j.failed, j.ended, j.scripts, j.users, j.causes,
                                                   j.peers_failed, j.peers_ended) as evidence
          from _judge_nodes(p_now) as j
          join node as n on n.id = j.node_id
         where j.eats and n.state = 'UP'
         order by j.failed * 1000 / j.ended desc, j.failed desc, length(n.name), n.name
    loop
        select count(*) filter (where q.drained) < greatest(1, count(*) filter (where n.state <> 'DOWN') / 10) into v_room
          from node as n
          left join node_quarantine as q on q.node_id = n.id
         where n.gpu_type = v_bad.gpu_type;
        continue when not v_room and exists (select from node_quarantine where node_id = v_bad.id);
        insert into node_quarantine as q (node_id, since, evidence, reason, drained, try_at)
        select v_bad.id, p_now, v_bad.evidence,
               format('quarantined: %s%s', v_bad.evidence,
                      case when not p_canaries then '; without ODC_IMAGE no canary can test it, so an operator must resume it'
                      else '' end),
               v_room, p_now + v_wait
            on conflict (node_id) do update
           set since = p_now, evidence = excluded.evidence, reason = excluded.reason, drained = v_room, try_at = excluded.try_at;
        if v_room then
            update node as n set state = 'DRAIN', state_at = p_now, reason = q.reason, reason_by = 'odcd'
              from node_quarantine as q where n.id = v_bad.id and q.node_id = n.id;
        end if;
        insert into event (at, kind, actor, node_id, detail)
        values (p_now, case when v_room then 'node_quarantined' else 'node_suspected' end, 'odcd', v_bad.id,
                jsonb_build_object('evidence', v_bad.evidence));
    end loop;
    if exists (select from node_free as f join node_quarantine as q on q.node_id = f.node_id where q.drained and f.up) then
        perform _regroup_nodes();
        perform _wake();
    end if;
end;
$$;
