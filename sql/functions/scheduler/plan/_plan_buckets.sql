-- odc._plan_buckets: the limits and the licences that apply to the classes, as one list of buckets.
-- Arguments, returns  as _plan_limits; all null if no limit applies. A licence has the scope 'licence', and its name in whats
create or replace function odc._plan_buckets(
    p_now timestamptz, p_class_shapes integer[], p_class_limits_s integer[], p_class_uids integer[],
    p_class_accounts integer[], p_class_qos integer[], p_what_if jsonb default null,
    out use_from integer[], out use_to integer[], out use_bucket integer[], out use_need bigint[], out use_more bigint[],
    out "left" bigint[], out consumes boolean[], out reasons text[], out scopes text[], out scope_ids integer[], out pers text[],
    out whats text[], out sharer_accounts integer[], out sharer_uids integer[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_limits record;  v_licences record;
begin
    select * into v_limits
      from _plan_limits(p_now, p_class_shapes, p_class_limits_s, p_class_uids, p_class_accounts, p_class_qos, p_what_if);
    select * into v_licences from _plan_licences(p_class_shapes, p_what_if);
    if v_licences.use_from is null then
        use_from := v_limits.use_from;  use_to := v_limits.use_to;  use_bucket := v_limits.use_bucket;
        use_need := v_limits.use_need;  use_more := v_limits.use_more;
        "left" := v_limits."left";  consumes := v_limits.consumes;  reasons := v_limits.reasons;
        scopes := v_limits.scopes;  scope_ids := v_limits.scope_ids;  pers := v_limits.pers;  whats := v_limits.whats;
        sharer_accounts := v_limits.sharer_accounts;  sharer_uids := v_limits.sharer_uids;
        return;
    end if;
    -- All jobs share a licence.
    scopes := v_limits.scopes || array_fill('licence'::text, array[cardinality(v_licences.whats)]);
    scope_ids := v_limits.scope_ids || array_fill(0, array[cardinality(v_licences.whats)]);
    pers := v_limits.pers || array_fill('group'::text, array[cardinality(v_licences.whats)]);
    whats := v_limits.whats || v_licences.whats;
    sharer_accounts := v_limits.sharer_accounts || array_fill(0, array[cardinality(v_licences.whats)]);
    sharer_uids := v_limits.sharer_uids || array_fill(-2, array[cardinality(v_licences.whats)]);
    if v_limits.use_from is null then
        use_from := v_licences.use_from;  use_to := v_licences.use_to;  use_bucket := v_licences.use_bucket;
        use_need := v_licences.use_need;
        use_more := array_fill(0::bigint, array[cardinality(v_licences.use_need)]);
        "left" := v_licences."left";  consumes := v_licences.consumes;  reasons := v_licences.reasons;
        return;
    end if;
    "left" := v_limits."left" || v_licences."left";  consumes := v_limits.consumes || v_licences.consumes;
    reasons := v_limits.reasons || v_licences.reasons;
    with uses as (
        select c.ord, 1 as part, u.bucket, u.need, u.more
          from unnest(v_limits.use_from, v_limits.use_to) with ordinality as c (f, t, ord)
         cross join lateral unnest(v_limits.use_bucket[c.f:c.t], v_limits.use_need[c.f:c.t], v_limits.use_more[c.f:c.t])
                            as u (bucket, need, more)
         union all
        select c.ord, 2, u.bucket + cardinality(v_limits."left"), u.need, 0
          from unnest(v_licences.use_from, v_licences.use_to) with ordinality as c (f, t, ord)
         cross join lateral unnest(v_licences.use_bucket[c.f:c.t], v_licences.use_need[c.f:c.t]) as u (bucket, need)
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
