-- odc.class_lists: the classes of a plan as parallel arrays, see _plan_classes. A view only for its row type: it has no rows.
create or replace view odc.class_lists as
select null::integer[]     as shape_ids,
       null::integer[]     as limits_s,
       null::integer[]     as uids,
       null::integer[]     as accounts,
       null::integer[]     as qos_ids,
       null::integer[]     as nices,
       null::timestamptz[] as head_ats,
       null::bigint[]      as head_ids,
       null::integer[]     as head_counts,
       null::integer[]     as tiers,
       null::text[]        as orderings,
       null::integer[]     as max_waits_s,
       null::text[]        as backfills,
       null::integer[]     as depths,
       null::integer[]     as sizes,
       null::integer[]     as fairs,
       null::float8[]      as statics,
       null::integer       as age_weight,
       null::integer       as max_age_s,
       null::integer[]     as kept_shape_ids,
       -- Jobs that claim nodes.
       null::bigint[]      as claim_jobs,
       null::integer[]     as claim_shapes,
       null::text[]        as claim_nodes,
       null::timestamptz[] as claim_ats
 where false;
