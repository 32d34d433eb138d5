-- odc._fail_nodes: jobs with members on nodes that have been down for too long are to end; whether there are any.
-- Where most nodes fall silent at once, it is the way to them that is broken, not they: as long as that is so, and three or
-- more are, nothing is ended.
-- Arguments  p_grace  how long is not too long; null: nothing is too long. What an operator took down keeps its jobs
-- Locks      running rows of these jobs
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
