-- odc._may_enter: whether the actor may enter this reservation by SSH: its owner, operators, and users whose GitHub
-- name was added. Users claim that name themselves: it only opens the connection, and after that the SSH keys decide.
create or replace function odc._may_enter(p_actor jsonb, p_owner_uid integer, p_asked odc.reservation)
returns boolean
language sql stable as $$
    select coalesce((p_actor ->> 'operator')::boolean, false) or p_owner_uid = (p_actor ->> 'uid')::integer
           or exists (select from odc.user_setting as s
                       where s.uid = (p_actor ->> 'uid')::integer
                         and lower(s.github_user) in (select lower(u) from unnest(p_asked.secondary_users) as u))
$$;
