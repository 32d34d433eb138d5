-- odc.show_end: when a running job is expected to end, and its latest end.
-- Returns    likely_end_at from the run times of similar jobs, never before p_now (null: none known); ends_at: its
--            limit, for a dev server its expiry; the grace period follows (null: no limit). No row: it does not run
create or replace function odc.show_end(p_job_id bigint, p_now timestamptz)
returns table (likely_end_at timestamptz, ends_at timestamptz)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select case when t.level < 8 then greatest(p_now, least(v.expires_at, r.started_at + make_interval(secs => t.p50_s))) end,
               nullif(greatest(p_now, coalesce(v.expires_at, r.ends_at)), 'infinity')
          from running as r
          join job as j on j.id = r.job_id
          left join reservation as v on v.job_id = r.job_id
         cross join lateral _predict_run_times(
                   array[r.uid], array[_run_name(j.name)], array[r.shape_id], array[r.time_limit_s],
                   array[greatest(0, extract(epoch from p_now - r.started_at))::integer]) as t
         where r.job_id = p_job_id and r.exited_at is null;
end;
$$;
