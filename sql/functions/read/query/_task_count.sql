-- odc._task_count: how many tasks a multirange holds; null for no array.
create or replace function odc._task_count(p_tasks int4multirange)
returns bigint
language sql immutable strict as $$
    select sum(upper(r) - lower(r)) from unnest(p_tasks) as r
$$;
