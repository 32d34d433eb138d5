-- odc._job_columns: the select list that renders odc.pending_job, running_job or ended_job (as v) for the API.
-- Arguments  p_fields  the keys wanted, in any order; null: all
-- Returns    SQL text; it refers to $1, the time of the request: a planned start is never in the past
-- Raises     OD010 BadRequest: a key that jobs do not have
create or replace function odc._job_columns(p_fields text[])
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_planned constant text := 'case when v.planned_start_at < $1 then $1 else v.planned_start_at end';
    v_columns text;
    v_unknown text;
begin
    with field (name, ord, expression) as (
        select a.attname::text, a.attnum::numeric,
               case when a.attname = 'planned_start_at' then format('odc._iso(%s)', v_planned)
                    when a.atttypid = 'timestamptz'::regtype then format('odc._iso(v.%I)', a.attname)
                    else format('v.%I', a.attname) end
          from pg_attribute as a
         where a.attrelid = 'odc.pending_job'::regclass and a.attnum > 0 and a.attname <> 'queued_at'
         union all
        select 'eta', a.attnum + 0.5,
               format('case when v.state = ''PENDING'' then coalesce('
                      '(select odc._eta(e.p10, e.p50, e.p90, %1$s, $1) from odc.eta as e where e.job_id = v.id), '
                      'odc._eta(null, null, null, %1$s, $1)) end', v_planned)
          from pg_attribute as a
         where a.attrelid = 'odc.pending_job'::regclass and a.attname = 'planned_start_at'
         union all
        select 'array_progress', 999, 'case when v.array_job_id is not null then odc._array_progress(v.array_job_id) end'
         union all
        select 'gpu_use', 1000, 'case when v.gpus > 0 and (v.state <> ''PENDING'' or v.restarts > 0) then odc._gpu_use_json(v.id, $1) end'
         union all
        select 'resource_use', 1001, 'case when v.state <> ''PENDING'' or v.restarts > 0 then odc._resource_use(v.id, $1) end'
    )
    select string_agg(format('%s as %I', f.expression, f.name), ', ' order by f.ord)
             filter (where p_fields is null or f.name = any (p_fields)),
           (select string_agg(format('"%s"', w), ', ' order by w) from unnest(p_fields) as w
             where w not in (select name from field))
      into v_columns, v_unknown
      from field as f;
    if v_unknown is not null or v_columns is null then
        raise exception using errcode = 'OD010',
            message = format('jobs have no field %s', coalesce(v_unknown, '""')),
            hint = 'The fields are those of Job in /openapi.json, separated by commas.';
    end if;
    return v_columns;
end;
$$;
