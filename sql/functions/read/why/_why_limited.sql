-- odc._why_limited: the limits and licences that keep a pending job from starting, and the running jobs that use them. If enough
-- is left now, but the last pass planned the job for later because jobs that are planned before it will need the rest: this.
-- Returns    as _why_limits
create or replace function odc._why_limited(p_job_id bigint, p_now timestamptz)
returns table ("text" text, "limit" text, job_id bigint, gpus integer, until timestamptz)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select l.text, l."limit", l.job_id, l.gpus, l.until from _why_limits(p_job_id, p_now) as l
         union all
        select l.text, l.limit_name, l.other_job_id, null, l.until from _why_licences(p_job_id) as l;
    if not found then
        return query
            select format('what is left of %s is kept for jobs that are planned before it',
                          case l.reason when 'Licenses' then 'the licences that it needs' else 'the limit ' || l.reason end),
                   l.reason, null::bigint, null::integer, l.planned_start_at
              from planned as l where l.job_id = p_job_id and l.reason is not null;
    end if;
end;
$$;
