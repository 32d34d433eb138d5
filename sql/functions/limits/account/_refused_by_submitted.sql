-- odc._refused_by_submitted: the jobs of a batch that exceed a limit on submitted jobs. A task counts as a job; pending
-- and running jobs count alike. Jobs of the batch count in their order, including refused ones.
-- Arguments  parallel, one per job of the batch: user, account, QOS, partitions (as text), tasks; null if already refused
-- Returns    position: of the job, from 1
-- Locks      the limits that apply, to the end of the transaction: submissions under the same limit are serialised
create or replace function odc._refused_by_submitted(
    p_uids integer[], p_accounts integer[], p_qos integer[], p_partitions text[], p_tasks integer[])
returns table ("position" integer, code text, message text, hint text)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    l record;
    h record;
    v_live bigint;
begin
    if not exists (select from resource_limit where what = 'submitted') then
        return;
    end if;
    for l in
        with job as materialized (
            select j.n::integer, j.uid, j.account_id, j.qos_id, j.partitions, j.tasks,
                   dense_rank() over (order by j.uid, j.account_id, j.qos_id, j.partitions)::integer as ask
              from unnest(p_uids, p_accounts, p_qos, p_partitions, p_tasks) with ordinality
                   as j (uid, account_id, qos_id, partitions, tasks, n)
             where j.partitions is not null
        ), ask as (
            select array_agg(a.uid order by a.ask) as uids, array_agg(a.account_id order by a.ask) as accounts,
                   array_agg(a.qos_id order by a.ask) as qos, array_agg(a.partitions order by a.ask) as partitions
              from (select distinct ask, uid, account_id, qos_id, partitions from job) as a
        )
        select m.scope, m.scope_id, m.per, m.value, m.b_account, m.b_uid,
               array_agg(j.n order by j.n) as positions, array_agg(j.tasks order by j.n) as tasks
          from ask as k
         cross join lateral _limits_of(k.uids, k.accounts, k.qos, k.partitions) as m
          join job as j on j.ask = m.ord
         where m.what = 'submitted'
         group by m.scope, m.scope_id, m.per, m.value, m.b_account, m.b_uid
         order by m.scope, m.scope_id, m.per, m.b_account, m.b_uid
    loop
        perform from resource_limit as r
          where (r.scope, r.scope_id, r.per, r.what) = (l.scope, l.scope_id, l.per, 'submitted') for no key update;
        select * into h from _limit_holder(l.scope, l.scope_id, l.per, l.b_account, l.b_uid);
        v_live := _live_tasks(h.account_ids, h.uid, h.qos_id, h.partition_id);
        return query
            select c.n, 'OD009',
                   format('%4$s may have %3$s, and %1$s more would make %2$s (%5$s)', c.tasks,
                          v_live + c.upto, _limit_amount('submitted', l.value), h.holder,
                          _limit_reason(l.scope, l.per, 'submitted')),
                   'Wait until some of them end, or cancel some.'
              from (select u.n, u.tasks, sum(u.tasks) over (order by u.n) as upto
                      from unnest(l.positions, l.tasks) as u (n, tasks)) as c
             where v_live + c.upto > l.value;
    end loop;
end;
$$;
