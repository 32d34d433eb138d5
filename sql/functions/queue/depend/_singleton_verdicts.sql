-- odc._singleton_verdicts: the singletons that no longer have an earlier live job of the same user and name.
-- The work is one index lookup per live job of these users plus one sort, however few rows the tables had when the plan
-- was made: `offset 0` and enable_seqscan leave the planner one way to find each row.
-- Arguments  p_job_ids  pending jobs, whatever their dependencies
create or replace function odc._singleton_verdicts(p_job_ids bigint[])
returns table (job_id bigint, ord integer)
language plpgsql stable set search_path = odc, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
begin
    return query
    with asked as materialized (
        select d.job_id, d.ord, d.name_key, p.uid, p.since
          from unnest(p_job_ids) as w (id)
         cross join lateral (select * from dependency as x where x.job_id = w.id offset 0) as d
         cross join lateral (select x.uid, coalesce(x.array_job_id, x.job_id) as since
                               from pending as x where x.job_id = d.job_id offset 0) as p
         where d.state = 'waiting' and d.kind = 'singleton'
    ), earlier as (
        select _name_key(u.uid, j.name) as name_key, l.since
          from (select a.uid, max(a.since) as before from asked as a group by a.uid) as u
         cross join lateral (select p.job_id, coalesce(p.array_job_id, p.job_id) as since from pending as p where p.uid = u.uid
                              union all
                             select r.job_id, coalesce(r.array_job_id, r.job_id) from running as r where r.uid = u.uid
                             offset 0) as l
         cross join lateral (select x.name from job as x where x.id = l.job_id offset 0) as j
         where l.since < u.before
    )
    select s.job_id, s.ord
      from (select c.*, min(c.since) over (partition by c.name_key) as first
              from (select a.job_id, a.ord, a.name_key, a.since from asked as a
                     union all
                    select null, null, e.name_key, e.since from earlier as e) as c) as s
     where s.ord is not null and s.since = s.first;
end;
$$;
