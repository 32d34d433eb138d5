-- odc._lock_submitted: lock the limits on submitted jobs that will apply to some jobs after a change, before anything is
-- changed: a submission also locks its limits first, and all of them in this order.
-- Arguments  p_job_ids  the jobs, of which the pending ones count
--            p_changes  as for update_jobs
-- Locks      resource_limit, to the end of the transaction
create or replace function odc._lock_submitted(p_job_ids bigint[], p_changes jsonb)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    l record;
begin
    if not exists (select from resource_limit where what = 'submitted') then
        return;
    end if;
    for l in
        with ask as (
            select distinct p.uid,
                   case when p_changes ? 'account' then a.id else p.account_id end as account_id,
                   case when p_changes ? 'qos' then q.id else p.qos_id end as qos_id,
                   case when p_changes ? 'partitions' then t.ids else s.partition_ids::text end as partitions
              from pending as p
              join shape as s on s.id = p.shape_id
              left join account as a on a.name = p_changes ->> 'account' and a.deleted_at is null
              left join qos as q on q.name = p_changes ->> 'qos' and q.deleted_at is null
             cross join (select array_agg(r.id)::text as ids
                           from partition as r where r.name = any (_words(p_changes -> 'partitions'))) as t
             where p.job_id = any (p_job_ids)
        ), asks as (
            select array_agg(uid) as uids, array_agg(account_id) as accounts, array_agg(qos_id) as qos,
                   array_agg(partitions) as partitions
              from ask
        )
        select distinct m.scope, m.scope_id, m.per
          from asks as k
         cross join lateral _limits_of(k.uids, k.accounts, k.qos, k.partitions) as m
         where m.what = 'submitted'
         order by m.scope, m.scope_id, m.per
    loop
        perform from resource_limit as r
          where (r.scope, r.scope_id, r.per, r.what) = (l.scope, l.scope_id, l.per, 'submitted') for no key update;
    end loop;
end;
$$;
