-- odc._account_json: an account as the API returns it.
create or replace function odc._account_json(p_account odc.account)
returns json
language sql stable as $$
    select json_build_object(
        'name', p_account.name,
        'parent', (select a.name from odc.account as a where a.id = p_account.parent),
        'description', p_account.description,
        'organisation', p_account.organisation,
        'shares', p_account.shares,
        'default_qos', (select q.name from odc.qos as q where q.id = p_account.default_qos_id),
        'qos', odc._qos_names(p_account.qos_ids),
        'coordinators', coalesce((select json_agg(c.user_name order by c.user_name) from odc.coordinator as c
                                   where c.account_id = p_account.id), '[]'),
        'users', coalesce((select json_agg(distinct m.user_name) from odc.association as m
                            where m.account_id = p_account.id), '[]'),
        'limits', odc._limits_json('account', p_account.id))
$$;
