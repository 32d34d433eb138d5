-- odc._plan_buckets: the limits and the licences that apply to the classes, as one list of buckets.
-- Arguments, returns  as _plan_limits; all null if no limit applies
create or replace function odc._plan_buckets(
    p_now timestamptz, p_class_shapes integer[], p_class_limits_s integer[], p_class_uids integer[],
    p_class_accounts integer[], p_class_qos integer[], p_what_if jsonb default null,
    out use_from integer[], out use_to integer[], out use_bucket integer[], out use_need bigint[], out use_more bigint[],
    out "left" bigint[], out consumes boolean[], out reasons text[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    a record;
    b record;
begin
    select * into a
      from _plan_limits(p_now, p_class_shapes, p_class_limits_s, p_class_uids, p_class_accounts, p_class_qos, p_what_if);
    select * into b from _plan_licences(p_class_shapes, p_what_if);
    if b.use_from is null then
        use_from := a.use_from;  use_to := a.use_to;  use_bucket := a.use_bucket;  use_need := a.use_need;
        use_more := a.use_more;
        "left" := a."left";  consumes := a.consumes;  reasons := a.reasons;
        return;
    end if;
    if a.use_from is null then
        use_from := b.use_from;  use_to := b.use_to;  use_bucket := b.use_bucket;  use_need := b.use_need;
        use_more := array_fill(0::bigint, array[cardinality(b.use_need)]);
        "left" := b."left";  consumes := b.consumes;  reasons := b.reasons;
        return;
    end if;
    "left" := a."left" || b."left";  consumes := a.consumes || b.consumes;  reasons := a.reasons || b.reasons;
    with uses as (
        select c.ord, 1 as part, u.bucket, u.need, u.more
          from unnest(a.use_from, a.use_to) with ordinality as c (f, t, ord)
         cross join lateral unnest(a.use_bucket[c.f:c.t], a.use_need[c.f:c.t], a.use_more[c.f:c.t]) as u (bucket, need, more)
         union all
        select c.ord, 2, u.bucket + cardinality(a."left"), u.need, 0
          from unnest(b.use_from, b.use_to) with ordinality as c (f, t, ord)
         cross join lateral unnest(b.use_bucket[c.f:c.t], b.use_need[c.f:c.t]) as u (bucket, need)
    ), span as (
        select c.ord, c.uses, sum(c.uses) over (order by c.ord) as upto
          from (select o as ord, (select count(*) from uses as u where u.ord = o) as uses
                  from generate_series(1, cardinality(p_class_shapes)) as o) as c
    )
    select (select array_agg((s.upto - s.uses + 1)::integer order by s.ord) from span as s),
           (select array_agg(s.upto::integer order by s.ord) from span as s),
           (select coalesce(array_agg(u.bucket::integer order by u.ord, u.part, u.bucket), '{}') from uses as u),
           (select coalesce(array_agg(u.need order by u.ord, u.part, u.bucket), '{}') from uses as u),
           (select coalesce(array_agg(u.more order by u.ord, u.part, u.bucket), '{}') from uses as u)
      into use_from, use_to, use_bucket, use_need, use_more;
end;
$$;
