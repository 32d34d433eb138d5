-- odc.set_github_user: set the GitHub user whose keys are the actor's own.
-- Arguments  p_actor        {user, uid, operator}
--            p_github_user  null: remove it
-- Returns    JSON {user, uid, github_user}
create or replace function odc.set_github_user(p_actor jsonb, p_github_user text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_uid constant integer := (p_actor ->> 'uid')::integer;
begin
    perform _set_now(p_now);
    insert into user_setting (uid, user_name, github_user, changed_at)
    values (v_uid, p_actor ->> 'user', p_github_user, p_now)
        on conflict (uid) do update
       set user_name = excluded.user_name, github_user = excluded.github_user, changed_at = excluded.changed_at;
    insert into event (at, kind, actor, detail)
    values (p_now, 'github_user_set', p_actor ->> 'user', jsonb_build_object('github_user', p_github_user));
    perform _wake();
    return json_build_object('user', p_actor ->> 'user', 'uid', v_uid, 'github_user', p_github_user)::text;
end;
$$;
