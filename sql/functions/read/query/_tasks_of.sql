-- odc._tasks_of: the tasks that odc._task_text wrote, as a multirange; null if p_text is null.
create or replace function odc._tasks_of(p_text text)
returns int4multirange
language sql stable as $$
    select range_agg(int4range(split_part(part, '-', 1)::integer,
                               split_part(part, '-', -1)::integer, '[]'))
      from unnest(string_to_array(split_part(p_text, '%', 1), ',')) as part
$$;
