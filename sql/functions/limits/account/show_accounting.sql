-- odc.show_accounting: the settings of priority and accounting.
-- Returns    JSON {weights, max_age_s, half_life_s, enforce, cpus_per_gpu}
create or replace function odc.show_accounting()
returns text
language sql stable as $$
    select json_build_object(
        'weights', (select json_object_agg(w.factor, w.weight
                           order by array_position('{age,size,fairshare,qos,partition}', w.factor)) from odc.priority_weight as w),
        'max_age_s', p.max_age_s, 'half_life_s', p.half_life_s, 'enforce', a.enforce, 'cpus_per_gpu', a.cpus_per_gpu)::text
      from odc.priority_setting as p cross join odc.account_setting as a
$$;
