-- odc.update_jobs: change jobs that have not ended; for ended jobs, only the comment.
-- Arguments  p_actor    as for _charge_change
--            p_changes  any of time_limit_s, time_limit_add_s (added to each job's own), nice, partitions, name, comment,
--                       dependency {text, any, terms}, array_throttle (null or 0: none), begin_at, deadline_at, account, qos,
--                       booking (a name; null: none)
-- Returns    as cancel_jobs, with outcome updated or refused; a job is changed completely or not at all
-- Locks      the turn; as _lock_submitted; pending, running, job, allocation; as _charge_change
-- Raises     OD010 BadRequest: a change of an unknown field
create or replace function odc.update_jobs(p_actor jsonb, p_filters jsonb, p_now timestamptz, p_changes jsonb)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_known   constant text[] := '{time_limit_s,time_limit_add_s,nice,partitions,name,comment,dependency,array_throttle,begin_at,deadline_at,booking,
                                  account,qos}';
    v_unknown text;
    v_changes jsonb;
    v_answers json[] := '{}';
    v_mine    json[];
    v_these   bigint[];
    v_names   bigint[];
    v_done    bigint[] := '{}';
    v_keys    bigint[] := '{}';
    v_arrays  bigint[];
    v_id      bigint;
    v_old     jsonb;
    v_code    text;
    v_message text;
    v_hint    text;
    v_missing record;
    f         record;
begin
    select string_agg(format('"%s"', k), ', ' order by k) into v_unknown
      from jsonb_object_keys(p_changes) as k where k <> all (v_known);
    if v_unknown is not null or p_changes = '{}' then
        raise exception using errcode = 'OD010',
            message = case when v_unknown is null then 'the request changes nothing'
                           else format('%s cannot be updated', v_unknown) end,
            hint = format('Fields that can be updated: %s.', array_to_string(v_known, ', '));
    end if;
    -- Before the turn: it may take long.
    if p_changes ? 'dependency' then
        p_changes := (_depend_on_leaders(array[p_changes]))[1];
    end if;
    select m.code, m.message, m.hint into v_missing
      from _missing_targets(array[jsonb_build_object('dependency', p_changes -> 'dependency')]) as m;
    perform _take_turn(p_now);
    if p_changes ?| '{account,qos,partitions}' then
        perform _lock_submitted(array(select m.job_id from _find_jobs(p_actor, p_filters) as m), p_changes);
    end if;
    for f in select * from _find_jobs(p_actor, p_filters) order by job_id loop
        if f.code is not null then
            v_answers := v_answers || _answer(f.job_id, f.array_task_id, 'refused', f.code, f.message, f.hint);
            continue;
        end if;
        begin
            v_mine := '{}';
            v_these := '{}';
            v_names := '{}';
            if v_missing.code is not null then
                raise exception using errcode = v_missing.code, message = v_missing.message, hint = v_missing.hint;
            end if;
            perform _charge_change(p_actor, coalesce(_task_count(f.tasks), 1), array[f.job_id], p_changes, p_now);
            foreach v_id in array case when f.tasks is null then array[f.job_id]
                                       else _split_tasks(f.job_id, f.tasks, p_now) end loop
                v_changes := case when p_changes ? 'time_limit_add_s' then _add_time(v_id, p_changes) else p_changes end;
                v_old := _update_job(p_actor, v_id, f.place, v_changes, p_now);
                insert into event (at, kind, actor, job_id, detail)
                values (p_now, 'updated', p_actor ->> 'user', v_id, jsonb_build_object('old', v_old, 'new', v_changes));
                v_these := v_these || v_id;
                v_names := v_names || _name_key(f.uid, v_old ->> 'name');
                v_mine := v_mine || _answer(
                    v_id, case when f.tasks is null then f.array_task_id
                               else (select j.array_task_id from job as j where j.id = v_id) end, 'updated');
            end loop;
            v_answers := v_answers || v_mine;
            v_done := v_done || v_these;
            v_keys := v_keys || v_names;
        exception when others then
            if sqlstate not like 'OD%' then
                raise;
            end if;
            get stacked diagnostics v_code = returned_sqlstate, v_message = message_text, v_hint = pg_exception_hint;
            v_answers := v_answers || _answer(f.job_id, f.array_task_id, 'refused', v_code, v_message, nullif(v_hint, ''));
        end;
    end loop;
    if p_changes ?| '{begin_at,booking,array_throttle,dependency}' then
        select array_agg(distinct j.array_job_id) into v_arrays
          from unnest(v_done) as d (id) join job as j on j.id = d.id where j.array_job_id is not null;
        perform _refresh_open_counts(v_arrays);
    end if;
    if p_changes ? 'name' then
        perform _judge_dependencies(v_done || _first_singletons(v_keys), p_now, '{}');
    end if;
    perform _wake();
    return array_to_json(v_answers)::text;
end;
$$;
