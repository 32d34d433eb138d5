-- odc.divide_change: the jobs that a change applies to, divided into parts. Each part is changed by a separate call, so
-- that others have the turn in between.
-- Arguments  p_actor, p_filters, p_place  see _find_jobs
--            p_apart  the named tasks of a pending range get separate rows (true), end together (false), or the range
--                     stays as it is (null)
--            p_most   maximum number of rows that one part changes; 100 terms that wait for a row count as another row,
--                     because they are judged when it ends
-- Returns    part: counted from 0; null: not to be changed, with the answer that refuses it. tasks: of a pending range;
--            null: only the row, with all its tasks
-- Raises     as _find_jobs; OD017 TooLarge: more than 1,000 tasks would get separate rows, or see _check_pieces
create or replace function odc.divide_change(
    p_actor jsonb, p_filters jsonb, p_place text, p_apart boolean, p_most integer)
returns table (part integer, job_id bigint, array_job_id bigint, tasks text, place text, answer text)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_found record;
    v_tasks bigint;
    -- Only a cancel ends jobs; it is the change in which named tasks of a range end together.
    v_cascades boolean := coalesce(not p_apart, false) and exists (select from dependency where state = 'waiting');
begin
    select array_agg(f.job_id) as ids, array_agg(f.array_job_id) as arrays, array_agg(f.tasks::text) as parts,
           array_agg(f.place) as places,
           array_agg(case when f.code is not null
                          then _answer(f.job_id, f.array_task_id, 'refused', f.code, f.message, f.hint)::text end) as answers
      into v_found
      from _find_jobs(p_actor, p_filters, p_place) as f;
    if p_apart is not null then
        select sum(_task_count(f.tasks::int4multirange)) into v_tasks
          from unnest(v_found.parts, v_found.answers) as f (tasks, answer)
         where p_apart and f.tasks is not null and f.answer is null;
        if v_tasks > 1000 then
            raise exception using errcode = 'OD017',
                message = format('%s tasks of arrays are too many at once', v_tasks),
                hint = 'Name at most 1,000 tasks, or whole arrays.';
        end if;
        perform _check_pieces(f.id, f.tasks::int4multirange, p_apart)
           from unnest(v_found.ids, v_found.parts, v_found.answers) as f (id, tasks, answer)
          where f.tasks is not null and f.answer is null;
    end if;
    return query
    with piece as (
        select f.*, t.task,
               case when f.answer is null
                    then (sum(w.weight) over (partition by f.answer is null order by f.id, t.task) - w.weight) / p_most end as part
          from unnest(v_found.ids, v_found.arrays, v_found.parts, v_found.places, v_found.answers)
               as f (id, array_id, tasks, place, answer)
          left join lateral (
               select s.task
                 from unnest(f.tasks::int4multirange) as r
                cross join generate_series(lower(r), upper(r) - 1) as s (task)
                where p_apart and f.answer is null) as t on true
         cross join lateral (
               select case when v_cascades and f.answer is null
                           then 1 + (select count(*) from dependency as d where d.target_id in (f.id, f.array_id) and d.state = 'waiting') / 100
                           else 1 end::bigint as weight offset 0) as w
    )
    select floor(p.part)::integer, p.id, p.array_id,
           case when count(p.task) > 0 then range_agg(int4range(p.task, p.task + 1))::text else p.tasks end, p.place, p.answer
      from piece as p
     group by p.part, p.id, p.array_id, p.tasks, p.place, p.answer
     order by 1, 2;
end;
$$;
