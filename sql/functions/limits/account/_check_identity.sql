-- odc._check_identity: refuse a uid for a name that is in use with another uid, and a uid that is in use by another
-- name. A login, an API key, usage or a disk puts a name and its uid in use.
-- Arguments  p_actor  {user, uid, operator}
-- Raises     OD028 InUse
create or replace function odc._check_identity(p_actor jsonb, p_user text, p_uid integer)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_operator constant boolean := coalesce((p_actor ->> 'operator')::boolean, false);
    v_known    record;
begin
    -- A login alone decides: a person of the same name on the daemon's machine may be someone else.
    with known as (
        select 1 as rank, 'logs in' as how, uid from login_user where user_name = p_user
         union all
        select 2, 'has an API key', uid from api_key where user_name = p_user
         union all
        select 3, 'has used the cluster', uid from usage where user_name = p_user
         union all
        select 4, 'has a disk', uid from disk where user_name = p_user
    )
    select k.uid, k.how into v_known from known as k
     where k.uid <> p_uid
       and (k.rank = 1 or not exists (select from known as same where same.uid = p_uid))
     order by k.rank, k.uid limit 1;
    if found then
        raise exception using errcode = 'OD028',
            message = format('user %s is known with uid %s and %s with it: the uid cannot be changed to %s', p_user, v_known.uid, v_known.how, p_uid),
            hint = 'A name keeps its uid. Leave the uid out, or give the person another name.';
    end if;
    -- A machine may rename a user, so usage and disks alone do not stop an operator from giving the uid a new name.
    select o.user_name into v_known
      from (select user_name, uid from login_user
             union all select user_name, uid from api_key
             union all select user_name, uid from usage where not v_operator
             union all select user_name, uid from disk where not v_operator) as o
     where o.uid = p_uid and o.user_name not in (p_user, p_uid::text)
     order by o.user_name limit 1;
    if found then
        raise exception using errcode = 'OD028',
            message = format('uid %s belongs to user %s, not to %s', p_uid, v_known.user_name, p_user),
            hint = 'A uid identifies one person. Use that name, or another uid.';
    end if;
end;
$$;
