-- odc._extension_delays: the planned starts that are delayed if a running job ends at another time. Reads only: the
-- setting odc.other_end, which _plan_releases reads, makes the plan with the other end.
-- Returns    JSON [{job_id, name, user, from, to}], in order of the planned starts
create or replace function odc._extension_delays(p_job_id bigint, p_ends_at timestamptz, p_now timestamptz)
returns json
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_before record;
    v_after  record;
begin
    select d.* into v_before from decide(p_now) as d;
    -- Without a protected job there is no planned start that could move.
    if v_before.head_jobs is null then
        return '[]';
    end if;
    perform set_config('odc.other_end', json_build_object('job_id', p_job_id, 'ends_at', p_ends_at)::text, true);
    select d.* into v_after from decide(p_now) as d;
    perform set_config('odc.other_end', '', true);
    return (select coalesce(json_agg(json_build_object('job_id', b.id, 'name', j.name, 'user', j.user_name,
                                                       'from', _iso(b.at), 'to', _iso(w.at))
                                     order by b.at, b.id), '[]')
              from unnest(v_before.head_jobs, v_before.head_ats) as b (id, at)
              join job as j on j.id = b.id
              left join unnest(v_after.head_jobs, v_after.head_ats) as w (id, at) on w.id = b.id
             where b.at is not null and (w.at is null or w.at > b.at) and b.id <> all (coalesce(v_after.start_jobs, '{}')));
end;
$$;
