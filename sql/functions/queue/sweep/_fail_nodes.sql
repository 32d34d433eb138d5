-- odc._fail_nodes: mark jobs for NODE_FAIL if a member's node has been down for too long; return whether there are any.
-- When most nodes go silent at once, the network to them is broken, not the nodes. While three or more nodes, and most of
-- all nodes, are silent, no job is ended.
-- Arguments  p_grace  how long a node may be down; null: forever. Nodes taken down by an operator keep their jobs
-- Locks      running and allocation rows of these jobs
create or replace function odc._fail_nodes(p_grace interval, p_now timestamptz)
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_silent bigint;
    v_all    bigint;
begin
    if p_grace is null then
        return false;
    end if;
    select count(*) filter (where state = 'DOWN' and reason like 'not ready%'),
           count(*) filter (where state <> 'DOWN' or reason like 'not ready%')
      into v_silent, v_all
      from node where reason_by is null;
    if v_silent >= 3 and 2 * v_silent > v_all then
        return false;
    end if;
    with away as materialized (
        select a.job_id, a.rank, format('node %s: %s', n.name, n.reason) as cause_text
          from node as n
          join allocation as a on a.node_id = n.id and a.state <> 'ended'
         where n.state = 'DOWN' and n.reason_by is null and n.state_at <= p_now - p_grace
    ), failing as (
        update running as r
           set intent = 'node_fail', intent_by = 'odcd', intent_at = p_now, state = 'COMPLETING',
               exit_detail = coalesce(r.exit_detail, d.cause_text)
          from (select w.job_id, string_agg(w.cause_text, '; ' order by w.cause_text) as cause_text from away as w group by w.job_id) as d
         where r.job_id = d.job_id and r.intent is null
        returning r.job_id
    )
    update allocation as a set strike = 'lost'
      from away as w
      join failing as f on f.job_id = w.job_id
     where a.job_id = w.job_id and a.rank = w.rank;
    return found;
end;
$$;
