-- odc.list_choices: the users and partitions by which the page filters. The page colours users in this order, too.
-- Returns    JSON {users: names of all users who have submitted a job, lowest uid first; partitions: names in order}
create or replace function odc.list_choices()
returns text
language sql stable as $$
    select json_build_object(
        'users', (select coalesce(json_agg(u.user_name order by u.uid, u.user_name), '[]')
                    from (select k.user_name, min(k.uid) as uid from odc.usage as k group by k.user_name) as u),
        'partitions', (select coalesce(json_agg(p.name order by p.name), '[]') from odc.partition as p))::text
$$;
