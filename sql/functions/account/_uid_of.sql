-- odc._uid_of: the uid of a user: as this machine says, else as jobs, memberships or API keys know the name.
-- Arguments  p_uid  what the machine says; null: it does not know the name
-- Raises     OD027 UnknownUser
create or replace function odc._uid_of(p_user text, p_uid integer)
returns integer
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_uid integer := coalesce(
        p_uid, (select min(uid) from association where user_name = p_user), (select min(uid) from usage where user_name = p_user),
        (select min(uid) from coordinator where user_name = p_user), (select min(uid) from api_key where user_name = p_user));
begin
    if v_uid is null then
        raise exception using errcode = 'OD027',
            message = format('user "%s" is not known', p_user),
            hint = 'Neither the daemon''s machine nor any job knows the name; give the number, too: --uid N.';
    end if;
    return v_uid;
end;
$$;
