-- odc.live_gpus: the GPUs allocated to jobs now, one row per member; none of nodes that are declared for accounting only.
-- Returns    gpu_indexes: on the node, ascending; running_at: null until all members have started
-- Locks      term for share
-- Raises     OD020 LeadershipLost
create or replace function odc.live_gpus(p_term bigint)
returns table (job_id bigint, attempt integer, rank integer, gpu_indexes integer[], running_at timestamptz)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    perform _hold_term(p_term);
    return query
        select r.job_id, r.attempt, a.rank,
               array(select i from generate_series(0, 61) as i where a.gpu_mask & (1::bigint << i) <> 0), r.running_at
          from running as r
          join allocation as a on a.job_id = r.job_id and a.gpus > 0 and a.state <> 'ended'
          join node as n on n.id = a.node_id and not n.declared
         order by r.job_id, a.rank;
end;
$$;
