-- odc._drain_nodes: drain the nodes on which a hook of the operator failed. A node that an operator or its manager has
-- already taken out of use keeps its reason.
-- Arguments  as record_facts: who reports it, and p_drains, JSON text by rank of the job
-- Locks      the caller holds the turn and the running rows; node by name
-- A repeated fact changes nothing: its member has ended by then, and an operator may have resumed the node.
create or replace function odc._drain_nodes(
    p_job_ids bigint[], p_attempts integer[], p_ranks integer[], p_drains text[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_nodes jsonb; -- by id, the reason
begin
    select jsonb_object_agg(a.node_id, d.value order by f.job_id, d.key) into v_nodes
      from unnest(p_job_ids, p_attempts, p_ranks, p_drains) as f (job_id, attempt, rank, drains)
      join running as r on r.job_id = f.job_id and r.attempt = f.attempt
      join allocation as own on own.job_id = f.job_id and own.rank = f.rank and own.state <> 'ended'
     cross join lateral jsonb_each_text(f.drains::jsonb) as d
      join allocation as a on a.job_id = f.job_id and a.rank = d.key::integer
     where f.drains is not null;
    if v_nodes is null then
        return;
    end if;
    perform from node where v_nodes ? id::text order by name for update;
    with drained as (
        update node
           set state = 'DRAIN', state_at = p_now, reason = left(v_nodes ->> id::text, 200), reason_by = 'odcd'
         where v_nodes ? id::text and state = 'UP'
        returning id, reason
    )
    insert into event (at, kind, actor, node_id, detail)
    select p_now, 'node_drain', 'odcd', id, jsonb_build_object('reason', reason) from drained order by id;
    perform _regroup_nodes();
    perform _wake();
end;
$$;
