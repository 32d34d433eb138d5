-- odc.diff_plans: the jobs whose planned starts differ between two passes, and what moved each, step by step.
-- Arguments  p_from, p_to        passes; null: the last one at or before p_from_at, p_to_at
-- Returns    JSON {from: {pass_id, at}, to: {…}, jobs: [{id, name, user, change: later | earlier | new | started | gone, from, to,
--            moves: [{pass_id, at, from, to, cause, event_id, job_id, text}]}]}
-- Raises     OD030 UnknownPass; OD010 BadRequest: p_to is before p_from
create or replace function odc.diff_plans(
    p_from bigint, p_from_at timestamptz, p_to bigint, p_to_at timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_from  pass := _find_pass(p_from, p_from_at);
    v_to    pass := _find_pass(p_to, p_to_at);
    v_jobs  bigint[];
    v_ats   timestamptz[];
    v_jobs_now bigint[];
    v_ats_now  timestamptz[];
begin
    if v_from.id > v_to.id then
        raise exception using errcode = 'OD010',
            message = format('pass %s is newer than pass %s', v_from.id, v_to.id), hint = 'Name the earlier one first.';
    end if;
    perform _see_pass(v_from, true);
    select array_agg(p.job_id), array_agg(p.planned_start_at) into v_jobs, v_ats from odc_past.planned as p;
    perform _see_pass(v_to, true);
    select array_agg(p.job_id), array_agg(p.planned_start_at) into v_jobs_now, v_ats_now from odc_past.planned as p;
    return (
        with moves as materialized (
            select m.* from _plan_moves(v_from, v_to, v_jobs_now, v_ats_now) as m
        ), both_ends as (
            select coalesce(o.id, n.id) as id, o.id is not null as was, n.id is not null as is, o.at as from_at, n.at as to_at,
                   (select m.cause from moves as m where m.job_id = coalesce(o.id, n.id) order by m.ord desc limit 1) as last_cause
              from unnest(v_jobs, v_ats) as o (id, at)
              full join unnest(v_jobs_now, v_ats_now) as n (id, at) on n.id = o.id
             where (o.id is null) <> (n.id is null) or o.at is distinct from n.at
        )
        select json_build_object(
                   'from', json_build_object('pass_id', v_from.id, 'at', _iso(v_from.at)),
                   'to', json_build_object('pass_id', v_to.id, 'at', _iso(v_to.at)),
                   'jobs', coalesce(json_agg(json_build_object(
                       'id', b.id, 'name', j.name, 'user', j.user_name,
                       'change', case when not b.was then 'new'
                                      when not b.is and b.last_cause = 'started' then 'started'
                                      when not b.is then 'gone'
                                      when coalesce(b.to_at, 'infinity') > coalesce(b.from_at, 'infinity') then 'later'
                                      else 'earlier' end,
                       'from', _iso(b.from_at), 'to', _iso(b.to_at),
                       'moves', (select coalesce(json_agg(json_build_object(
                                            'pass_id', m.pass_id, 'at', _iso(m.at), 'from', _iso(m.was), 'to', _iso(m.becomes),
                                            'cause', m.cause, 'event_id', m.event_id, 'job_id', m.by_job_id, 'text', m.text)
                                            order by m.ord), '[]')
                                   from moves as m where m.job_id = b.id))
                       order by coalesce(b.from_at, b.to_at), b.id), '[]'))::text
          from both_ends as b
          join job as j on j.id = b.id);
end;
$$;
