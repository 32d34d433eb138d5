-- odc.dispatches: the running attempts of these jobs (null: of all jobs), as odcd.records.dispatch.Dispatch in JSON.
-- Raises     OD020 LeadershipLost
create or replace function odc.dispatches(p_term bigint, p_job_ids bigint[])
returns table (body text)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    return query
    -- All members in one join: without statistics, a join per job would read all nodes for each job.
    with member as materialized (
        select a.job_id, a.rank, jsonb_build_object(
                   'rank', a.rank, 'node', n.name, 'gpu_type', n.gpu_type,
                   'gpu_indexes', _mask_indexes(a.gpu_mask), 'cpus', a.cpus, 'mem_mib', a.mem_mib,
                   'node_gpus', n.gpus, 'node_cpus', n.cpus, 'node_mem_mib', n.mem_mib, 'virtual', n.declared,
                   'state', a.state) as member
          from allocation as a
          join node as n on n.id = a.node_id
         where p_job_ids is null or a.job_id = any (p_job_ids)
    ), gang as materialized (
        select m.job_id, jsonb_agg(m.member order by m.rank) as members from member as m group by m.job_id
    )
    select d.body
      from running as r
      join job as j on j.id = r.job_id
      join gang as g on g.job_id = r.job_id
     cross join lateral _dispatch(j, p_term, r.attempt, r.partition_id, r.started_at, r.ends_at, g.members) as d
     order by r.started_at, r.job_id;
end;
$$;
