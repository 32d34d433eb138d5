-- odc.class_facts: what orders the jobs of one class, see _plan_classes. A view only for its row type: it has no rows.
create or replace view odc.class_facts as
select null::integer as class,
       null::integer as shape_id,
       null::integer as limit_s,
       null::integer as uid,
       null::integer as account_id,
       null::integer as qos_id,
       null::integer as nice,
       null::integer as tier,
       null::text    as ordering,
       null::integer as depth,
       null::integer as max_wait_s,
       null::text    as backfill,
       null::integer as size,
       null::integer as fair,
       null::float8  as static,
       null::integer as age_weight,
       null::integer as max_age_s
 where false;
