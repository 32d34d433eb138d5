-- odc.ended_request: what a batch job or array that has ended requested, so that its user can submit it again.
-- Arguments  p_selector  {job_id, tasks}; tasks: of an array, null: all
-- Returns    an object: the columns of job, the names of its partitions, account, QOS and booking, its shape, its mail, script
--            and environment, and for an array its tasks in sbatch's form
-- Raises     OD006 UnknownJob, OD012 WrongState, OD013 NotOwner
create or replace function odc.ended_request(p_actor jsonb, p_selector jsonb)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_found  record;
    v_job_id constant bigint := (p_selector ->> 'job_id')::bigint;
    v_tasks  int4multirange;
    v_body   jsonb;
begin
    select f.* into v_found
      from _find_jobs(p_actor, jsonb_build_object('ids', jsonb_build_array(p_selector))) as f
     order by f.code, f.place <> 'ended' desc, f.job_id limit 1;
    if v_found.code is not null then
        raise exception using errcode = v_found.code, message = v_found.message, hint = v_found.hint;
    elsif v_found.place <> 'ended' then
        raise exception using errcode = 'OD012', message = format('job %s has not ended', v_found.job_id),
            hint = 'Only jobs that have ended are submitted again.';
    elsif v_found.uid <> (p_actor ->> 'uid')::integer then
        raise exception using errcode = 'OD013', message = format('job %s belongs to another user', v_found.job_id),
            hint = 'Only its owner can submit it again.';
    end if;
    if v_found.array_job_id is not null then
        v_tasks := coalesce((p_selector ->> 'tasks')::int4multirange,
                            (select range_agg(t.tasks)
                               from job as j
                              cross join lateral (select case when j.array_task_id is null then _tasks_of(j.array_tasks)
                                                              else int4multirange(int4range(j.array_task_id, j.array_task_id, '[]'))
                                                              end as tasks) as t
                              where j.array_job_id = v_found.array_job_id and (v_job_id = v_found.array_job_id or j.id = v_job_id)));
    end if;

    select to_jsonb(j) || jsonb_build_object(
               'partitions', array(select p.name from partition as p where p.id = any (j.partition_ids) order by p.name),
               'account', a.name, 'qos', q.name, 'booking', b.name, 'shape', to_jsonb(s),
               'mail', (select jsonb_build_object('kinds', m.kinds, 'address', m.address) from job_mail as m
                         where m.job_id in (j.id, j.array_job_id) limit 1),
               'array', _task_text(v_tasks, d.throttle), 'script', t.content, 'environment', e.content)
      into v_body
      from job as j
      join account as a on a.id = j.account_id
      join qos as q on q.id = j.qos_id
      join shape as s on s.id = j.shape_id
      join job_text as t on t.digest = j.script_digest
      join job_text as e on e.digest = j.environment_digest
      left join booking as b on b.id = s.booking_id
      left join array_job as d on d.job_id = j.array_job_id
     where j.id = v_found.job_id;
    if v_body is null or v_body ->> 'kind' <> 'batch' or v_body #> '{shape,components}' <> 'null' then
        raise exception using errcode = 'OD012', message = format('job %s cannot be submitted again by its number', v_found.job_id),
            hint = case when v_body ->> 'kind' = 'reservation' then 'It is a reservation: reserve again.'
                        when v_body is null then 'Its script is no longer stored. Submit it from its file.'
                        else 'It is a heterogeneous job. Submit it from its file.' end;
    end if;
    return v_body;
end;
$$;
