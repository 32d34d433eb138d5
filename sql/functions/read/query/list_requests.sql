-- odc.list_requests: what jobs requested beside their size, for the columns of Slurm's commands that few lists show.
-- Arguments  p_ids  jobs; ids that do not exist are left out
create or replace function odc.list_requests(p_ids bigint[])
returns table (job_id bigint, gid integer, requeue boolean, stdin text, submit_host text, options jsonb, constraint_expr text,
               node_list text[], exclude_nodes text[], exclusive boolean, tmp_per_node_mib integer)
language sql stable set search_path = odc, pg_temp as $$
    select j.id, j.gid, j.requeue, j.stdin, j.submit_host, j.options, s.constraint_expr, s.node_list, s.exclude_nodes,
           s.exclusive, s.tmp_per_node_mib
      from job as j
      left join running as r on r.job_id = j.id
      left join pending as p on p.job_id = j.id
      join shape as s on s.id = coalesce(r.shape_id, p.shape_id, j.shape_id)
     where j.id = any (p_ids);
$$;
