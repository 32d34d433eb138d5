-- odc._why_licences: the licences of which too few are left for a pending job, and the running jobs that use them.
-- Returns    a row per licence (limit_name, no other_job_id; until: when enough of it is released) and one per job that
--            uses it, at most 16 per licence, soonest end first
create or replace function odc._why_licences(p_job_id bigint)
returns table (cause text, text text, other_job_id bigint, limit_name text, until timestamptz)
language sql stable as $$
    with short as materialized (
        select u.name, u.total, u.used, n.value::bigint as need
          from odc.pending as p
          join odc.shape as s on s.id = p.shape_id
         cross join lateral jsonb_each_text(s.licences) as n (name, value)
          join odc._licence_use() as u on u.name = n.name
         where p.job_id = p_job_id and u.total - u.used < n.value::bigint
    ), holder as (
        select w.name, r.job_id, r.ends_at, (s.licences ->> w.name)::bigint as held,
               row_number() over (partition by w.name order by r.ends_at, r.job_id) as n,
               sum((s.licences ->> w.name)::bigint) over (partition by w.name order by r.ends_at, r.job_id)
                   >= w.need - (w.total - w.used) as enough
          from short as w
          join odc.shape as s on s.licences ? w.name
          join odc.running as r on r.shape_id = s.id
    )
    (select 'limit',
           case when w.need > w.total then format('it needs %s of licence %s, but the total is %s', w.need, w.name, w.total)
                else format('it needs %s of licence %s, and %s of %s are in use', w.need, w.name, w.used, w.total) end,
           null::bigint, w.name,
           (select min(h.ends_at) from holder as h where h.name = w.name and h.enough and w.need <= w.total and isfinite(h.ends_at))
      from short as w
     order by w.name)
    union all
    (select 'running_job',
           format('job %s holds %s of licence %s%s', h.job_id, h.held, h.name,
                  case when isfinite(h.ends_at) then ' until ' || odc._iso(h.ends_at) else ', with no time limit' end),
           h.job_id, h.name, h.ends_at
      from holder as h where h.n <= 16
     order by h.name, h.n)
$$;
