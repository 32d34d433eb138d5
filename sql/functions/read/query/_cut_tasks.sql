-- odc._cut_tasks: the beginning of what odc._task_text wrote about tasks that have ended; see odc._short_tasks.
-- Arguments  p_most  how many characters are kept
create or replace function odc._cut_tasks(p_text text, p_most integer default 1000)
returns text
language sql immutable as $$
    select case when length(p_text) <= p_most then p_text
                else regexp_replace(left(p_text, p_most), ',[^,]*$', '') || ',...' end
$$;
