-- odc._live_cursor: where a page of live jobs starts.
-- Arguments  p_after  the id of a running job, or of a pending one negated; null: at the beginning
-- Returns    at    when it started or was queued; for a pending job also its nice
create or replace function odc._live_cursor(p_after bigint, out at timestamptz, out nice integer)
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if p_after > 0 then
        select coalesce(r.started_at, j.started_at, t.started_at) into at
          from job as j
          left join running as r on r.job_id = j.id
          left join lateral (select max(a.started_at) as started_at from attempt as a
                              where a.job_id = j.id) as t on true
         where j.id = p_after;
    elsif p_after < 0 then
        select coalesce(p.nice, j.nice), coalesce(p.queued_at, j.submitted_at) into nice, at
          from job as j
          left join pending as p on p.job_id = j.id
         where j.id = -p_after;
    end if;
end;
$$;
