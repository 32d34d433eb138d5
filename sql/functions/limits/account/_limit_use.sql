-- odc._limit_use: the current use of limits on running jobs.
-- Arguments  parallel, as _limits_of returns them; limits per job and on submitted jobs are not counted
-- Returns    per limit with any use, counted from 1: jobs, GPUs, CPUs, nodes; of GPU-minutes, the GPU-milliseconds of
--            ended attempts, decayed, and of running ones from their start to their limit
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
    ), use as materialized (
        select r.account_id, r.uid, r.qos_id, r.partition_id, r.jobs, r.nodes, r.gpus, r.cpus, 0::bigint as gpu_ms
          from odc._running_use(p_now) as r
         union all
        select t.account_id, t.uid, t.qos_id, t.partition_id, 0, 0, 0, 0, t.gpu_ms
          from odc._time_spoken_for(p_now) as t
         where 'gpu_minutes' = any (p_whats)
    ), draw as (
        select 'qos' as scope, u.qos_id as id, s.per,
               case when s.per = 'account' then u.account_id else 0 end as account_id,
               case when s.per = 'user' then u.uid else -2 end as uid, u.jobs, u.nodes, u.gpus, u.cpus, u.gpu_ms
          from use as u cross join unnest('{group,user,account}'::text[]) as s (per)
         where 'qos' = any (p_scopes)
         union all
        select 'partition', u.partition_id, s.per, case when s.per = 'account' then u.account_id else 0 end,
               case when s.per = 'user' then u.uid else -2 end, u.jobs, u.nodes, u.gpus, u.cpus, u.gpu_ms
          from use as u cross join unnest('{group,user,account}'::text[]) as s (per)
         where 'partition' = any (p_scopes)
         union all
        select 'account', l.ancestor_id, 'group', 0, -2, u.jobs, u.nodes, u.gpus, u.cpus, u.gpu_ms
          from use as u join odc._account_lines() as l on l.account_id = u.account_id
         where 'account' = any (p_scopes)
         union all
        -- A limit per user, set on an account above, applies in each account separately.
        select 'account', l.ancestor_id, 'user', u.account_id, u.uid, u.jobs, u.nodes, u.gpus, u.cpus, u.gpu_ms
          from use as u join odc._account_lines() as l on l.account_id = u.account_id
         where 'account' = any (p_scopes)
         union all
        select 'user', s.id, 'group', 0, -2, u.jobs, u.nodes, u.gpus, u.cpus, u.gpu_ms
          from use as u
          join odc.association as s on s.account_id = u.account_id and s.uid = u.uid
                                   and (s.partition_id is null or s.partition_id = u.partition_id)
         where 'user' = any (p_scopes)
    )
    select b.n, sum(case b.what when 'jobs' then d.jobs when 'gpus' then d.gpus when 'cpus' then d.cpus
                                when 'nodes' then d.nodes else d.gpu_ms end)::bigint
      from draw as d
      join bucket as b on b.scope = d.scope and b.id = d.id and b.per = d.per
                      and b.account_id = d.account_id and b.uid = d.uid
     group by b.n
$$;
