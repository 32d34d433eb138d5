-- odc.list_licences: every licence, with how many exist, are in use, and are waited for.
-- Returns    a JSON array as text
create or replace function odc.list_licences()
returns text
language sql stable as $$
    select coalesce(json_agg(json_build_object(
               'name', u.name, 'total', u.total, 'used', u.used, 'free', greatest(u.total - u.used, 0),
               'jobs', array(select r.job_id from odc.running as r join odc.shape as s on s.id = r.shape_id
                              where s.licences ? u.name order by r.job_id limit 1000)) order by u.name), '[]')::text
      from odc._licence_use() as u
$$;
