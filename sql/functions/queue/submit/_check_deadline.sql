-- odc._check_deadline: refuse a deadline that a job starting at p_start_at could not meet.
-- Arguments  p_time_limit_s  as requested; null or 2147483647: unknown, so the job may end early enough
-- Raises     OD010 BadRequest
create or replace function odc._check_deadline(p_deadline_at timestamptz, p_start_at timestamptz, p_time_limit_s integer)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if p_deadline_at <= p_start_at
       or p_time_limit_s < 2147483647 and p_deadline_at < p_start_at + make_interval(secs => p_time_limit_s) then
        raise exception using errcode = 'OD010',
            message = format('deadline %s cannot be met: the job could end at %s at the earliest', _iso(p_deadline_at),
                _iso(p_start_at + make_interval(secs => coalesce(nullif(p_time_limit_s, 2147483647), 0)))),
            hint = 'Move the deadline, or request a shorter time limit.';
    end if;
end;
$$;
