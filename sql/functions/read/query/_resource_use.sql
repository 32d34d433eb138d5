-- odc._resource_use: what the processes of a job's last ended attempt used, as the API returns it; null: it was not measured.
-- Returns    as _used_json, of the script and all steps; script: of the script alone
create or replace function odc._resource_use(p_job_id bigint, p_now timestamptz)
returns jsonb
language sql stable set search_path = odc, pg_temp as $$
    select _used_json(u.whole) || jsonb_build_object('script', _used_json(a.used))
      from (select t.attempt, t.used from attempt as t
             where t.job_id = p_job_id and t.ended_at <= p_now
             order by t.attempt desc limit 1) as a
     cross join lateral (
           select array[sum(p.used[1]), sum(p.used[2]), max(p.used[3]), sum(p.used[4]), sum(p.used[5])]::bigint[] as whole, count(*) as parts
             from (select a.used where a.used is not null
                    union all
                   select s.used from step as s where s.job_id = p_job_id and s.attempt = a.attempt and s.used is not null) as p (used)) as u
     where u.parts > 0
$$;
