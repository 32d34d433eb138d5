-- odc._fail_nodes: jobs with members on nodes that have been down for too long are to end; whether there are any.
-- Arguments  p_grace  how long is not too long; null: nothing is too long. What an operator took down keeps its jobs
-- Locks      running rows of these jobs
create or replace function odc._fail_nodes(p_grace interval, p_now timestamptz)
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    update running as r
       set intent = 'node_fail', intent_by = 'odcd', intent_at = p_now, state = 'COMPLETING',
           exit_detail = coalesce(r.exit_detail, d.told)
      from (select a.job_id, string_agg(format('node %s: %s', n.name, n.reason), '; ' order by n.name) as told
              from node as n
              join allocation as a on a.node_id = n.id and a.state <> 'ended'
             where n.state = 'DOWN' and n.reason_by is null and n.state_at <= p_now - p_grace
             group by a.job_id) as d
     where r.job_id = d.job_id and r.intent is null;
    return found;
end;
$$;
