-- odc.dispatches: the running attempts of these jobs (null: of all), as odcd.model.Dispatch in JSON.
-- Raises     OD020 LeadershipLost
create or replace function odc.dispatches(p_term bigint, p_job_ids bigint[])
returns table (body text)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    return query
    select _dispatch(j, p_term, r.attempt, r.partition_id, r.started_at, r.ends_at, m.members)
      from running as r
      join job as j on j.id = r.job_id
     cross join lateral (
           select jsonb_agg(jsonb_build_object(
                      'rank', a.rank, 'node', n.name, 'gpu_type', n.gpu_type,
                      'gpu_indexes', _mask_indexes(a.gpu_mask), 'cpus', a.cpus, 'mem_mib', a.mem_mib,
                      'node_gpus', n.gpus, 'node_cpus', n.cpus, 'node_mem_mib', n.mem_mib, 'virtual', n.declared, 'state', a.state) order by a.rank) as members
             from allocation as a join node as n on n.id = a.node_id
            where a.job_id = r.job_id) as m
     where p_job_ids is null or r.job_id = any (p_job_ids)
     order by r.started_at, r.job_id;
end;
$$;
