-- odc._short_tasks: the first 100 ranges of some tasks of an array, as odc._task_text writes them: 0,2,4,...%5.
-- Lists show it: an array can wait as 10,000 ranges, and one answer can have 10,000 arrays.
-- Arguments  as odc._task_text
create or replace function odc._short_tasks(p_tasks int4multirange, p_throttle integer)
returns text
language sql stable as $$
    with part as (
        -- In the select list, unnest stops at the limit.
        select u.r, row_number() over (order by lower(u.r)) as n
          from (select unnest(p_tasks) as r limit 101) as u
    )
    select string_agg(case when upper(r) - lower(r) = 1 then lower(r)::text
                           else lower(r) || '-' || upper(r) - 1 end, ',' order by n) filter (where n <= 100)
           || case when max(n) > 100 then ',...' else '' end
           || coalesce('%' || p_throttle, '')
      from part
$$;
