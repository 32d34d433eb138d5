-- odc._task_text: tasks of an array in sbatch's form: 0-9,12, and the throttle as %4.
-- Arguments  p_tasks     as int4multirange writes it: [low, high)
--            p_throttle  null: none
create or replace function odc._task_text(p_tasks int4multirange, p_throttle integer)
returns text
language sql stable as $$
    select string_agg(case when upper(r) - lower(r) = 1 then lower(r)::text
                           else lower(r) || '-' || upper(r) - 1 end, ',' order by lower(r))
           || coalesce('%' || p_throttle, '')
      from unnest(p_tasks) as r
$$;
