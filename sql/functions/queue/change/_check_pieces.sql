-- odc._check_pieces: refuse to take tasks out of an array's pending range if that would leave too many pieces: each
-- start, end or change of a task of the array reads all of them while it holds the turn.
-- Arguments  p_apart  the tasks get separate pending rows; false: they end together
-- Raises     OD017 TooLarge: more than 1,000 tasks are held or changed separately, or there are more than 10,000
--            separate ranges; an existing excess is accepted as long as it does not grow
create or replace function odc._check_pieces(p_array_id bigint, p_tasks int4multirange, p_apart boolean)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_own  bigint;
    v_left int4multirange;
    v_was  int4multirange;
begin
    if p_apart then
        -- Requeued tasks have separate rows, too, but those were not created by the user.
        select count(*) into v_own
          from pending as p where p.array_job_id = p_array_id and p.tasks is null and p.attempt = 1;
        if v_own + _task_count(p_tasks) > 1000 then
            raise exception using errcode = 'OD017',
                message = format('%s tasks of array %s are too many at once', _task_count(p_tasks), p_array_id)
                          || case when v_own > 0 then format(' beside %s that are already separate', v_own) else '' end,
                hint = 'At most 1,000 tasks of an array can be held or changed separately: name fewer, or the whole array.';
        end if;
    end if;
    select p.tasks, p.tasks - p_tasks into v_was, v_left from pending as p where p.job_id = p_array_id;
    if (select count(*) from unnest(v_left)) > greatest(10000, (select count(*) from unnest(v_was))) then
        raise exception using errcode = 'OD017',
            message = format('array %s would be split into more than 10,000 ranges of tasks', p_array_id),
            hint = 'Name consecutive tasks, or the whole array.';
    end if;
end;
$$;
