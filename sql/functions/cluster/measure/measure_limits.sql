-- odc.measure_limits: the used part of the limits on groups; see sql/functions/cluster/measure/README.md for the form.
-- A limit of 0 counts as fully used.
create or replace function odc.measure_limits(p_now timestamptz)
returns table (metric text, labels text[], value double precision)
language sql stable as $$
    with cap as materialized (
        select l.scope, l.scope_id, l.what, l.value, row_number() over (order by l.scope, l.scope_id, l.what)::integer as n,
               case l.scope when 'account' then (select a.name from odc.account as a where a.id = l.scope_id and a.deleted_at is null)
                            when 'qos' then (select q.name from odc.qos as q where q.id = l.scope_id and q.deleted_at is null)
                            else (select t.name from odc.partition as t where t.id = l.scope_id) end as name
          from odc.resource_limit as l
         where l.scope in ('account', 'qos', 'partition') and l.per = 'group' and l.what <> 'submitted'
    ), side as (
        select array_agg(c.scope order by c.n) as scopes, array_agg(c.scope_id order by c.n) as ids, array_agg('group'::text) as pers,
               array_agg(c.what order by c.n) as whats, array_agg(0) as accounts, array_agg(-2) as uids
          from cap as c
    ), use as (
        select u.n, u.used from side as s cross join lateral odc._limit_use(p_now, s.scopes, s.ids, s.pers, s.whats, s.accounts, s.uids) as u
    )
    select 'odcd_limit_used_ratio', array[c.scope, c.name, c.what],
           case when c.value = 0 then 1
                else coalesce(u.used, 0) / (c.value * case c.what when 'gpu_minutes' then 60000.0 else 1.0 end) end::double precision
      from cap as c
      left join use as u on u.n = c.n
     where c.name is not null
$$;
