-- odc._limit_use: how much of limits on running jobs is used up now.
-- Arguments  parallel, as _limits_of returns them; limits per job and on submitted jobs are not counted
-- Returns    per limit with any use, counted from 1: jobs, GPUs, CPUs, nodes; or the GPU-milliseconds of ended
--            attempts, decayed, and of running ones from their start to their limit
create or replace function odc._limit_use(
    p_now timestamptz, p_scopes text[], p_scope_ids integer[], p_pers text[], p_whats text[],
    p_accounts integer[], p_uids integer[])
returns table (n integer, used bigint)
language sql stable as $$
    with bucket as materialized (
        select b.n::integer, b.scope, b.id, b.per, b.what, b.account_id, b.uid
          from unnest(p_scopes, p_scope_ids, p_pers, p_whats, p_accounts, p_uids) with ordinality
               as b (scope, id, per, what, account_id, uid, n)
         where b.per <> 'job' and b.what <> 'submitted'
    ), used as materialized (
        select r.account_id, r.uid, r.qos_id, r.partition_id, r.jobs, r.nodes, r.gpus, r.cpus, 0::bigint as gpu_ms
          from odc._running_use(p_now) as r
         union all
        select t.account_id, t.uid, t.qos_id, t.partition_id, 0, 0, 0, 0, t.gpu_ms
          from odc._time_spoken_for(p_now) as t
         where 'gpu_minutes' = any (p_whats)
    ), draw as (
        select b.n, b.what, u.* from bucket as b join used as u on u.qos_id = b.id
         where b.scope = 'qos' and b.per = 'group'
         union all
        select b.n, b.what, u.* from bucket as b join used as u on u.qos_id = b.id and u.uid = b.uid
         where b.scope = 'qos' and b.per = 'user'
         union all
        select b.n, b.what, u.* from bucket as b join used as u on u.qos_id = b.id and u.account_id = b.account_id
         where b.scope = 'qos' and b.per = 'account'
         union all
        select b.n, b.what, u.* from bucket as b join used as u on u.partition_id = b.id
         where b.scope = 'partition' and b.per = 'group'
         union all
        select b.n, b.what, u.* from bucket as b join used as u on u.partition_id = b.id and u.uid = b.uid
         where b.scope = 'partition' and b.per = 'user'
         union all
        select b.n, b.what, u.* from bucket as b join used as u on u.partition_id = b.id and u.account_id = b.account_id
         where b.scope = 'partition' and b.per = 'account'
         union all
        select b.n, b.what, u.*
          from bucket as b
          join odc._account_lines() as l on l.ancestor_id = b.id
          join used as u on u.account_id = l.account_id
         where b.scope = 'account' and b.per = 'group'
         union all
        select b.n, b.what, u.* from bucket as b join used as u on u.account_id = b.account_id and u.uid = b.uid
         where b.scope = 'account' and b.per = 'user'
         union all
        select b.n, b.what, u.*
          from bucket as b
          join odc.association as s on s.id = b.id
          join used as u on u.account_id = s.account_id and u.uid = s.uid
                        and (s.partition_id is null or s.partition_id = u.partition_id)
         where b.scope = 'user'
    )
    select d.n, sum(case d.what when 'jobs' then d.jobs when 'gpus' then d.gpus when 'cpus' then d.cpus
                                when 'nodes' then d.nodes else d.gpu_ms end)::bigint
      from draw as d
     group by d.n
$$;
