-- odc._replace_dependency: replace the dependencies of a pending job, or remove them (null text). The caller
-- then recounts which tasks of its array may start.
-- Arguments  p_dependency  {text, any, terms}
-- Raises     OD011 BadDependency: the target waits for this job; OD009 LimitExceeded: too many jobs wait for it, or it waits
--            for too many
create or replace function odc._replace_dependency(p_job_id bigint, p_dependency jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_wrong record;
    v_job   jsonb := jsonb_build_object('dependency', p_dependency);
    v_none  boolean := coalesce(jsonb_array_length(nullif(p_dependency -> 'terms', 'null')), 0) = 0;
begin
    select r.* into v_wrong
      from job as j
     cross join _refused_dependencies(array[jsonb_build_object('uid', j.uid)], array[v_job], '{0}') as r
     where j.id = p_job_id
     limit 1;
    if found then
        raise exception using errcode = v_wrong.code, message = v_wrong.message, hint = v_wrong.hint;
    end if;
    with recursive behind (id) as (
        select (t ->> 'target_id')::bigint from jsonb_array_elements(nullif(p_dependency -> 'terms', 'null')) as t
        union
        select d.target_id from behind as b join dependency as d on d.job_id = b.id
    )
    -- The limit stops the search: a user can make it long, and everybody waits for the turn meanwhile.
    select coalesce(bool_or(b.id = p_job_id), false) as itself, count(*) as jobs into v_wrong
      from (select id from behind limit 10001) as b;
    if v_wrong.itself then
        raise exception using errcode = 'OD011',
            message = format('job %s would wait for itself', p_job_id),
            hint = 'One of the jobs that it would wait for already waits for it.';
    end if;
    if v_wrong.jobs > 10000 then
        raise exception using errcode = 'OD009',
            message = format('job %s would wait for more than 10000 jobs, one after the other', p_job_id),
            hint = format('Cancel job %s, and submit it again with the dependency.', p_job_id);
    end if;
    delete from dependency where job_id = p_job_id;
    update pending
       set dependency = case when v_none then 'met' else 'waiting' end::dependency_state,
           dependency_any = coalesce((p_dependency ->> 'any')::boolean, false), closed_tasks = null,
           eligible_at = case when v_none and held is null and begun then coalesce(eligible_at, p_now) end
     where job_id = p_job_id;
    if not v_none then
        perform _write_dependencies(array[p_job_id], array[v_job], p_now);
    end if;
end;
$$;
