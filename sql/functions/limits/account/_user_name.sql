-- odc._user_name: the name of a user, from jobs and associations.
create or replace function odc._user_name(p_uid integer)
returns text
language sql stable as $$
    select coalesce((select min(a.user_name) from odc.association as a where a.uid = p_uid),
                    (select min(u.user_name) from odc.usage as u where u.uid = p_uid), 'with uid ' || p_uid)
$$;
