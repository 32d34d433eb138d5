-- odc._change_pending: hold or release jobs; both are about pending jobs only.
-- Arguments  p_outcome  held or released: what is done, and what the answers say
create or replace function odc._change_pending(p_actor jsonb, p_filters jsonb, p_now timestamptz, p_outcome text)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_operator boolean := coalesce((p_actor ->> 'operator')::boolean, false);
    v_verb     text := case p_outcome when 'held' then 'hold' else 'release' end;
    v_answers  jsonb := '[]';
    v_done     bigint[] := '{}';
    v_ids      bigint[];
    v_arrays   bigint[];
    f          record;
begin
    perform _lock_jobs(p_actor, p_filters);
    for f in
        select x.*, p.held
          from _find_jobs(p_actor, p_filters) as x left join pending as p on p.job_id = x.job_id
         order by x.job_id
    loop
        if f.code is not null then
            v_answers := v_answers || _answer(f.job_id, f.array_task_id, 'refused', f.code, f.message, f.hint);
        elsif f.place <> 'pending' then
            v_answers := v_answers || _answer(
                f.job_id, f.array_task_id, 'refused', 'OD012',
                format('job %s cannot be %s: it %s', f.job_id, p_outcome,
                       case f.place when 'running' then 'runs' else 'has ended' end),
                format('Only pending jobs can be %s.', p_outcome));
        elsif p_outcome = 'released' and f.held = 'admin' and not v_operator then
            v_answers := v_answers || _answer(
                f.job_id, f.array_task_id, 'refused', 'OD013',
                format('job %s is held by an operator', f.job_id), 'Ask an operator to release it.');
        else
            v_ids := array[f.job_id];
            if f.tasks is not null then
                v_ids := array(select _split_tasks(f.job_id, f.tasks));
            end if;
            v_done := v_done || v_ids;
            v_answers := v_answers || (
                select jsonb_agg(_answer(j.id, j.array_task_id, p_outcome) order by j.id)
                  from job as j where j.id = any (v_ids));
        end if;
    end loop;

    update pending as p
       set held = case when p_outcome = 'released' then null
                       when v_operator and (p_actor ->> 'uid')::integer <> p.uid then 'admin'
                       else coalesce(p.held, 'user') end::job_hold,
           reason = case when p_outcome = 'released' then null else p.reason end,
           eligible_at = case when p_outcome = 'released' and p.begun and p.dependency = 'met'
                              then coalesce(p.eligible_at, p_now) else p.eligible_at end
     where p.job_id = any (v_done);
    insert into event (at, kind, actor, job_id)
    select p_now, p_outcome, p_actor ->> 'user', id from unnest(v_done) as id;
    select array_agg(distinct p.array_job_id) into v_arrays
      from pending as p where p.job_id = any (v_done) and p.array_job_id is not null;
    if v_arrays is not null then
        perform _refresh_open_counts(v_arrays);
    end if;
    notify odc;
    return v_answers::text;
end;
$$;
