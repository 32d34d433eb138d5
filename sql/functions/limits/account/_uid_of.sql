-- odc._uid_of: the uid of a user: from the accounts, else from this machine, else from logins, jobs or API keys that
-- have the name. In the accounts a name is one person and a person has one name.
-- Arguments  p_uid  from the machine or the request; null: neither gives one
-- Raises     OD027 UnknownUser, OD028 InUse: the accounts have the name with another uid, or the uid with another name
create or replace function odc._uid_of(p_user text, p_uid integer)
returns integer
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_uid   integer;
    v_known record;
begin
    select b.user_name, b.uid, a.name as account into v_known
      from (select account_id, uid, user_name from association
             union all select account_id, uid, user_name from coordinator) as b
      join account as a on a.id = b.account_id
     where b.user_name = p_user or b.uid = p_uid
     order by b.user_name = p_user and b.uid = p_uid, b.user_name = p_user desc, a.name
     limit 1;
    if v_known.uid <> p_uid then
        raise exception using errcode = 'OD028',
            message = format('user %s has uid %s in account "%s", not %s', p_user, v_known.uid, v_known.account, p_uid),
            hint = 'A name identifies one person. If another person has the name now, remove the user from all accounts first.';
    elsif v_known.user_name <> p_user then
        raise exception using errcode = 'OD028',
            message = format('uid %s belongs to user %s in account "%s", not to %s', p_uid, v_known.user_name, v_known.account, p_user),
            hint = format('Use the name %s. If the name has changed, remove that user from all accounts first.', v_known.user_name);
    end if;
    v_uid := coalesce(
        p_uid, v_known.uid, (select uid from login_user where user_name = p_user),
        (select min(uid) from usage where user_name = p_user),
        (select min(uid) from api_key where user_name = p_user));
    if v_uid is null then
        raise exception using errcode = 'OD027',
            message = format('user "%s" is unknown', p_user),
            hint = 'The daemon''s machine has no such user, and no job or login has that name. An operator can also give the uid: --uid N.';
    end if;
    return v_uid;
end;
$$;
