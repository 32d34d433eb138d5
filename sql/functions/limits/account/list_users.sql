-- odc.list_users: users of accounts, and coordinators.
-- Arguments  p_user  null: all
-- Returns    a JSON array of {user, uid, default_account, coordinates, accounts: [{account, partition, shares, ...}]}
-- Raises     OD027 UnknownUser
create or replace function odc.list_users(p_user text)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_found json;
begin
    select json_agg(json_build_object(
               'user', u.user_name,
               'uid', u.uid,
               'default_account', (select a.name from association as m join account as a on a.id = m.account_id
                                    where m.uid = u.uid and m.is_default),
               'coordinates', coalesce((select json_agg(a.name order by a.name) from coordinator as c
                                          join account as a on a.id = c.account_id where c.uid = u.uid), '[]'),
               'accounts', coalesce((
                   select json_agg(json_build_object(
                              'account', a.name,
                              'partition', t.name,
                              'shares', m.shares,
                              'default_qos', (select q.name from qos as q where q.id = m.default_qos_id),
                              'qos', _qos_names(m.qos_ids),
                              'limits', _limits_json('user', m.id)) order by a.name, t.name nulls first)
                     from association as m
                     join account as a on a.id = m.account_id
                     left join partition as t on t.id = m.partition_id
                    where m.uid = u.uid), '[]')) order by u.user_name, u.uid) into v_found
      from (select uid, min(user_name) as user_name
              from (select uid, user_name from association union all select uid, user_name from coordinator) as b
             group by uid) as u
     where p_user is null or u.user_name = p_user;
    if v_found is null and p_user is not null then
        raise exception using errcode = 'OD027',
            message = format('user "%s" is not a member of any account', p_user),
            hint = '`odcctl user list` shows the members; `odcctl user add` adds one.';
    end if;
    return coalesce(v_found, '[]');
end;
$$;
