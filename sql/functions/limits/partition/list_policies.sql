-- odc.list_policies: the policies, and the partitions that use them.
-- Arguments  p_names  only these; null: all
-- Returns    a JSON array
create or replace function odc.list_policies(p_names text[] default null)
returns text
language sql stable as $$
    select coalesce(json_agg(json_build_object(
               'name', y.name, 'ordering', y.ordering, 'max_wait_s', y.max_wait_s, 'backfill', y.backfill,
               'plan_depth', y.plan_depth,
               'partitions', array(select p.name from odc.partition as p where p.policy = y.name order by p.name))
               order by y.name), '[]')::text
      from odc.policy as y
     where p_names is null or y.name = any (p_names)
$$;
