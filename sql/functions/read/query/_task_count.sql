-- odc._task_count: the number of tasks in a multirange; null if it is not an array.
create or replace function odc._task_count(p_tasks int4multirange)
returns bigint
language sql immutable strict as $$
    select sum(upper(r) - lower(r)) from unnest(p_tasks) as r
$$;
