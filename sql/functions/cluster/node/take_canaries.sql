-- odc.take_canaries: the canaries that must be on their nodes now; begins those that are due.
-- A canary waits until its node is ready, not cordoned, and has a GPU that the jobs still running there do not use.
-- Raises     OD020 LeadershipLost
create or replace function odc.take_canaries(p_term bigint, p_now timestamptz)
returns table (number integer, node text, gpu_type text, gpus integer, cpus integer, mem_mib integer, until timestamptz)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_budget constant interval := '5 minutes';
begin
    perform _hold_term(p_term);
    update node_quarantine as q
       set canary = nextval('node_canary'), canary_until = p_now + v_budget
      from node as n
      join node_free as f on f.node_id = n.id
     where n.id = q.node_id and q.drained and q.canary is null and q.try_at <= p_now
       and n.state = 'DRAIN' and n.reason_by = 'odcd'
       and (f.gpus > 0 or n.gpus = 0) and f.cpus > 0 and f.mem_mib > 0;
    return query
    select q.canary, n.name, n.gpu_type, n.gpus, n.cpus, n.mem_mib, q.canary_until
      from node_quarantine as q
      join node as n on n.id = q.node_id
     where q.canary is not null
     order by q.canary;
end;
$$;
