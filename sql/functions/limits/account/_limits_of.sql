-- odc._limits_of: the limits that apply to jobs of an account, user, QOS and partitions.
-- They are the limits of the QOS and of each partition, and the group limits of the account and of all accounts above it.
-- Of the limits per user and per job, only the nearest applies: of the user's association, else of the account, else of
-- the next account above. A limit of the QOS replaces the account's and the user's limit of the same kind.
-- Arguments  parallel, one per ask; p_partitions: a shape's partitions as text, '{1,2}'
-- Returns    ord: the ask, from 1; the limit; and its sharers: b_account and b_uid: 0 and -2 for all (root has uid 0)
create or replace function odc._limits_of(p_uids integer[], p_accounts integer[], p_qos integer[], p_partitions text[])
returns table (ord integer, scope text, scope_id integer, per text, what text, value bigint,
               b_account integer, b_uid integer)
language sql stable as $$
    with ask as materialized (
        select a.ord::integer, a.uid, a.account_id, a.qos_id, a.partitions::integer[] as partition_ids
          from unnest(p_uids, p_accounts, p_qos, p_partitions) with ordinality as a (uid, account_id, qos_id, partitions, ord)
    ), candidate as (
        select k.ord, l.scope, l.scope_id, l.per, l.what, l.value, l.per as as_per, -3 as depth,
               case when l.per = 'account' then k.account_id else 0 end as b_account,
               case when l.per = 'user' then k.uid else -2 end as b_uid
          from ask as k
          join odc.resource_limit as l on l.scope = 'qos' and l.scope_id = k.qos_id
         union all
        select k.ord, l.scope, l.scope_id, l.per, l.what, l.value,
               case when l.per = 'group' then 'user' else 'job' end, case when s.partition_id is null then -1 else -2 end,
               0, -2
          from odc.resource_limit as l
          join odc.association as s on s.id = l.scope_id
          join ask as k on k.account_id = s.account_id and k.uid = s.uid
         where l.scope = 'user' and (s.partition_id is null or s.partition_id = any (k.partition_ids))
         union all
        select k.ord, l.scope, l.scope_id, l.per, l.what, l.value, l.per, n.depth,
               case when l.per = 'user' then k.account_id else 0 end, case when l.per = 'user' then k.uid else -2 end
          from odc.resource_limit as l
          join odc._account_lines() as n on n.ancestor_id = l.scope_id
          join ask as k on k.account_id = n.account_id
         where l.scope = 'account'
    ), ranked as (
        select c.*, first_value(c.scope) over w as first_scope, row_number() over w as place
          from candidate as c
        window w as (partition by c.ord, c.as_per, c.what order by c.depth, c.value)
    )
    select r.ord, r.scope, r.scope_id, r.per, r.what, r.value, r.b_account, r.b_uid
      from ranked as r
     where r.place = 1 or r.as_per = 'group' and r.first_scope <> 'qos'
     union all
    select k.ord, l.scope, l.scope_id, l.per, l.what, l.value,
           case when l.per = 'account' then k.account_id else 0 end, case when l.per = 'user' then k.uid else -2 end
      from ask as k
     cross join lateral unnest(k.partition_ids) as p (id)
      join odc.resource_limit as l on l.scope = 'partition' and l.scope_id = p.id
$$;
