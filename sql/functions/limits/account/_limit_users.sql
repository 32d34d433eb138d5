-- odc._limit_users: the running jobs that use limits or licences, and how much of them each uses. GPU-minutes and limits per
-- job are not included.
-- Arguments  p_wanted  limits, as positions in the other arrays, which _plan_buckets returns
create or replace function odc._limit_users(
    p_wanted integer[], p_scopes text[], p_scope_ids integer[], p_pers text[], p_whats text[], p_accounts integer[], p_uids integer[])
returns table (bucket integer, job_id bigint, amount bigint)
language sql stable as $$
    with limited as materialized (
        select b.n, p_scopes[b.n] as scope, p_whats[b.n] as what, h.*
          from unnest(p_wanted) as b (n)
          left join lateral odc._limit_holder(p_scopes[b.n], p_scope_ids[b.n], p_pers[b.n], p_accounts[b.n], p_uids[b.n]) as h
            on p_scopes[b.n] <> 'licence'
    ), sharer as materialized (
        -- Running jobs belong to few groups; each group shares a limit or does not.
        select l.n, l.scope, l.what, g.*
          from (select distinct u.account_id, u.uid, u.qos_id, u.partition_id from odc.running_use as u where u.jobs > 0) as g
          join limited as l
            on (l.uid is null or l.uid = g.uid) and (l.account_ids is null or g.account_id = any (l.account_ids))
               and (l.qos_id is null or l.qos_id = g.qos_id) and (l.partition_id is null or l.partition_id = g.partition_id)
    ), used as (
        select s.n, r.job_id,
               case when s.scope = 'licence' then (p.licences ->> s.what)::bigint
                    when s.what = 'jobs' then 1 when s.what = 'nodes' then r.node_count
                    when not p.exclusive then r.node_count * case s.what when 'gpus' then p.gpus_per_node else p.cpus_per_node end
                    else (select sum(case s.what when 'gpus' then a.gpus else a.cpus end)
                            from odc.allocation as a where a.job_id = r.job_id) end as amount
          from sharer as s
          join odc.running as r
            on r.account_id = s.account_id and r.uid = s.uid and r.qos_id = s.qos_id and r.partition_id = s.partition_id
          join odc.shape as p on p.id = r.shape_id and (s.scope <> 'licence' or p.licences ? s.what)
    )
    select u.n, u.job_id, u.amount from used as u where u.amount > 0
$$;
