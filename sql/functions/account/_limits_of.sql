-- odc._limits_of: the limits that hold for jobs of some account, user, QOS and partitions.
-- Those of the QOS and of each partition; those of all accounts upwards, each with all below it; and of limits per
-- user and per job the nearest: of the user's association, else of the account, else of the next above. A limit of
-- the QOS stands in for the account's and the user's of its kind.
-- Arguments  parallel, one per ask; p_partitions: a shape's partitions as text, '{1,2}'
-- Returns    ord: the ask, from 1; the limit; and who shares it: b_account and b_uid, 0 for all
create or replace function odc._limits_of(p_uids integer[], p_accounts integer[], p_qos integer[], p_partitions text[])
returns table (ord integer, scope text, scope_id integer, per text, what text, value bigint,
               b_account integer, b_uid integer)
language sql stable as $$
    with ask as materialized (
        select a.ord::integer, a.uid, a.account_id, a.qos_id, a.partitions::integer[] as partition_ids
          from unnest(p_uids, p_accounts, p_qos, p_partitions) with ordinality as a (uid, account_id, qos_id, partitions, ord)
    ), qos_limit as materialized (
        select k.ord, l.scope, l.scope_id, l.per, l.what, l.value,
               case when l.per = 'account' then k.account_id else 0 end as b_account,
               case when l.per = 'user' then k.uid else 0 end as b_uid
          from ask as k
          join odc.resource_limit as l on l.scope = 'qos' and l.scope_id = k.qos_id
    ), chain as (
        select distinct on (c.ord, c.as_per, c.what, case when c.as_per = 'group' then c.depth end) c.*
          from (select k.ord, l.scope, l.scope_id, l.per, l.what, l.value, l.per as as_per, n.depth,
                       case when l.per = 'user' then k.account_id else 0 end as b_account,
                       case when l.per = 'user' then k.uid else 0 end as b_uid
                  from ask as k
                  join odc._account_lines() as n on n.account_id = k.account_id
                  join odc.resource_limit as l on l.scope = 'account' and l.scope_id = n.ancestor_id
                 union all
                select k.ord, l.scope, l.scope_id, l.per, l.what, l.value,
                       case when l.per = 'group' then 'user' else 'job' end, case when s.partition_id is null then -1 else -2 end,
                       0, 0
                  from ask as k
                  join odc.association as s on s.account_id = k.account_id and s.uid = k.uid
                                           and (s.partition_id is null or s.partition_id = any (k.partition_ids))
                  join odc.resource_limit as l on l.scope = 'user' and l.scope_id = s.id) as c
         order by c.ord, c.as_per, c.what, case when c.as_per = 'group' then c.depth end, c.depth, c.value
    )
    select q.ord, q.scope, q.scope_id, q.per, q.what, q.value, q.b_account, q.b_uid
      from qos_limit as q
     union all
    select c.ord, c.scope, c.scope_id, c.per, c.what, c.value, c.b_account, c.b_uid
      from chain as c
     where not exists (select from qos_limit as q where q.ord = c.ord and q.per = c.as_per and q.what = c.what)
     union all
    select k.ord, l.scope, l.scope_id, l.per, l.what, l.value,
           case when l.per = 'account' then k.account_id else 0 end, case when l.per = 'user' then k.uid else 0 end
      from ask as k
      join odc.resource_limit as l on l.scope = 'partition' and l.scope_id = any (k.partition_ids)
$$;
