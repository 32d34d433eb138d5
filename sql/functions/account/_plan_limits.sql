-- odc._plan_limits: the limits that classes of pending jobs draw on, and what is left of them. Without limits it reads
-- one empty table and returns nulls.
-- Arguments  parallel, one per class: shape, time limit, user, account, QOS
-- Returns    use_from, use_to  per class its span of use_*, counted from 1; from > to where nothing limits it
--            use_bucket, use_need  a limit, and what one job of the class takes of it: more than `left` is passed over
--            left, consumes, reasons  per limit: what is left, whether a start takes its need away, Slurm's name.
--            Limits per job are there only for classes whose jobs exceed them.
create or replace function odc._plan_limits(
    p_now timestamptz, p_class_shapes integer[], p_class_limits_s integer[], p_class_uids integer[],
    p_class_accounts integer[], p_class_qos integer[],
    out use_from integer[], out use_to integer[], out use_bucket integer[], out use_need bigint[],
    out "left" bigint[], out consumes boolean[], out reasons text[])
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ask   integer[];      -- per class: its ask, the same for classes that differ in shape and time only
    v_asks  record;
    v_limit record;         -- per ask and limit that holds for it, `bucket`: the limit's number
    b       record;         -- per limit
begin
    if not exists (select from resource_limit) then
        return;
    end if;
    with class as (
        select c.ord, c.uid, c.account_id, c.qos_id, s.partition_ids::text as partitions,
               dense_rank() over (order by c.uid, c.account_id, c.qos_id, s.partition_ids) as ask
          from unnest(p_class_shapes, p_class_uids, p_class_accounts, p_class_qos) with ordinality
               as c (shape_id, uid, account_id, qos_id, ord)
          join shape as s on s.id = c.shape_id
    ), ask as (
        select distinct ask, uid, account_id, qos_id, partitions from class
    )
    select a.*, (select array_agg(c.ask order by c.ord) from class as c) as class_ask into v_asks
      from (select array_agg(uid order by ask) as uids, array_agg(account_id order by ask) as accounts,
                   array_agg(qos_id order by ask) as qos, array_agg(partitions order by ask) as partitions
              from ask) as a;
    v_ask := v_asks.class_ask;
    select array_agg(l.ord) as asks, array_agg(l.bucket) as buckets, array_agg(l.scope) as scopes,
           array_agg(l.scope_id) as scope_ids, array_agg(l.per) as pers, array_agg(l.what) as whats,
           array_agg(l.value) as limits, array_agg(l.b_account) as accounts, array_agg(l.b_uid) as uids
      into v_limit
      from (select m.*, dense_rank() over (order by m.scope, m.scope_id, m.per, m.what, m.b_account, m.b_uid)::integer as bucket
              from _limits_of(v_asks.uids, v_asks.accounts, v_asks.qos, v_asks.partitions) as m
             where m.what <> 'submitted') as l;
    if v_limit.asks is null then
        return;
    end if;

    select array_agg(l.scope order by l.bucket) as scopes, array_agg(l.id order by l.bucket) as ids,
           array_agg(l.per order by l.bucket) as pers, array_agg(l.what order by l.bucket) as whats,
           array_agg(l.value order by l.bucket) as limits, array_agg(l.account_id order by l.bucket) as accounts,
           array_agg(l.uid order by l.bucket) as uids
      into b
      from (select distinct u.bucket, u.scope, u.id, u.per, u.what, u.value, u.account_id, u.uid
              from unnest(v_limit.buckets, v_limit.scopes, v_limit.scope_ids, v_limit.pers, v_limit.whats,
                          v_limit.limits, v_limit.accounts, v_limit.uids)
                   as u (bucket, scope, id, per, what, value, account_id, uid)) as l;
    select array_agg(case when l.what = 'gpu_minutes' then l.value * 60000 else l.value end - coalesce(u.used, 0) order by l.n),
           array_agg(l.per <> 'job' order by l.n), array_agg(_limit_reason(l.scope, l.per, l.what) order by l.n)
      into "left", consumes, reasons
      from unnest(b.scopes, b.pers, b.whats, b.limits) with ordinality as l (scope, per, what, value, n)
      left join _limit_use(p_now, b.scopes, b.ids, b.pers, b.whats, b.accounts, b.uids) as u on u.n = l.n;

    with class as materialized (
        select c.ord, c.ask, c.limit_s, a.nodes, a.gpus, a.cpus, q.usage_factor
          from unnest(p_class_shapes, p_class_limits_s, p_class_qos, v_ask) with ordinality
               as c (shape_id, limit_s, qos_id, ask, ord)
          join shape as s on s.id = c.shape_id
          join qos as q on q.id = c.qos_id
         cross join lateral _shape_amounts(s) as a
    ), draw as (
        select c.ord, l.bucket, l.per,
               _limit_need(l.what, c.nodes, c.gpus, c.cpus, c.limit_s, c.usage_factor) as need
          from class as c
          join unnest(v_limit.asks, v_limit.buckets, v_limit.pers, v_limit.whats) as l (ask, bucket, per, what)
            on l.ask = c.ask
    ), kept as (
        select d.ord, d.bucket, d.need
          from draw as d
         where d.need > 0 and (d.per <> 'job' or d.need > "left"[d.bucket])
    ), per_class as (
        select c.ord, count(k.ord) as uses from class as c left join kept as k on k.ord = c.ord group by c.ord
    ), span as (
        select p.ord, sum(p.uses) over (order by p.ord) as upto, p.uses from per_class as p
    )
    select (select array_agg(s.upto - s.uses + 1 order by s.ord) from span as s),
           (select array_agg(s.upto order by s.ord) from span as s),
           (select coalesce(array_agg(k.bucket order by k.ord, k.bucket), '{}') from kept as k),
           (select coalesce(array_agg(k.need order by k.ord, k.bucket), '{}') from kept as k)
      into use_from, use_to, use_bucket, use_need;
end;
$$;
