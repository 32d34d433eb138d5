-- odc._cut_tasks: the beginning of what odc._task_text wrote about tasks that have ended; see odc._short_tasks.
create or replace function odc._cut_tasks(p_text text)
returns text
language sql immutable as $$
    select case when length(p_text) <= 1000 then p_text
                else regexp_replace(left(p_text, 1000), ',[^,]*$', '') || ',...' end
$$;
