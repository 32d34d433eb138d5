-- odc.log_in: log in a user whose identity was checked: assign the uid, store the key, and write a line to the audit log.
-- The uid is that of the accounts; else that of the last login; else a new one, above all uids in use.
-- Arguments  p_detail   for the audit log: {account, role, from}
--            p_github   the user's verified name at GitHub; null: not requested
--            p_own_uid  the daemon's, which no user may have
--            p_digest, p_prefix, p_expires_at, p_until_at  the key, as in keep_api_key
-- Returns    the uid
-- Locks      login_user, share row exclusive
-- Raises     OD033 LoginRefused: the uid is the daemon's, root's or another user's, or GitHub's name is; the accounts
--            have another uid than the last login
create or replace function odc.log_in(
    p_user text, p_detail jsonb, p_github text, p_own_uid integer, p_digest text, p_prefix text, p_now timestamptz,
    p_expires_at timestamptz, p_until_at timestamptz)
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    -- Above the uids that machines, directories and containers assign; see docs/operating/login.md.
    v_first constant integer := 1900000000;
    v_uid   integer;
    v_last  integer;
    v_other text;
begin
    lock table login_user in share row exclusive mode;
    select min(b.uid) into v_uid
      from (select uid, user_name from association union all select uid, user_name from coordinator) as b
     where b.user_name = p_user;
    select uid into v_last from login_user where user_name = p_user;
    if v_uid <> v_last then
        raise exception using errcode = 'OD033',
            message = format('user %s logs in with uid %s but has uid %s in the accounts', p_user, v_last, v_uid),
            hint = 'A name keeps its uid. Ask an operator to remove the user from all accounts and to add the name again without --uid.';
    end if;
    v_uid := coalesce(v_uid, v_last);
    if v_uid is null then
        select greatest(v_first - 1, max(u.uid)) + 1 into strict v_uid
          from (select uid from login_user union all select uid from association union all select uid from coordinator
                union all select uid from usage union all select uid from api_key) as u
         where u.uid >= v_first;
    end if;
    if v_uid in (0, p_own_uid) then
        raise exception using errcode = 'OD033',
            message = format('user %s has uid %s in the accounts, but that uid belongs to %s', p_user, v_uid,
                             case when v_uid = 0 then 'root' else 'the account of odcd' end),
            hint = 'An operator can give the user another uid: odcctl user remove, then odcctl user add --uid N.';
    end if;
    -- A user who may add members to an account must not be able to give one of them another person's uid.
    select o.user_name into v_other
      from (select uid, user_name from login_user union all select uid, user_name from usage
            union all select uid, user_name from api_key
            union all select j.uid, j.user_name from job as j
             where j.id in (select job_id from pending where uid = v_uid
                            union all select job_id from running where uid = v_uid)) as o
     where o.uid = v_uid and o.user_name not in (p_user, v_uid::text)
     order by 1 limit 1;
    if v_other is not null then
        raise exception using errcode = 'OD033',
            message = format('user %s has uid %s in the accounts, but that uid belongs to user %s', p_user, v_uid, v_other),
            hint = 'An operator can give the user another uid: odcctl user remove, then odcctl user add --uid N.';
    elsif exists (select from login_user where lower(github_user) = lower(p_github) and user_name <> p_user) then
        raise exception using errcode = 'OD033',
            message = format('another user already logs in with the GitHub name %s', p_github),
            hint = 'Use your own GitHub name.';
    end if;
    insert into login_user (user_name, uid, github_user, made_at, login_at)
    values (p_user, v_uid, p_github, p_now, p_now)
        on conflict (user_name) do update
       set uid = excluded.uid, login_at = excluded.login_at,
           github_user = coalesce(excluded.github_user, login_user.github_user);
    perform keep_api_key(p_digest, p_user, v_uid, v_uid, p_now, p_expires_at, p_prefix, p_until_at);
    insert into event (at, kind, actor, detail)
    values (p_now, 'login', p_user, p_detail || jsonb_build_object('uid', v_uid, 'key', p_prefix));
    return v_uid;
end;
$$;
