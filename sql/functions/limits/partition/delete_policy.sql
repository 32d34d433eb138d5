-- odc.delete_policy: delete a policy, by an operator. Policy `odc` cannot be deleted, because new partitions use it.
-- Returns    the policy before its deletion, as JSON text
-- Locks      the turn; policy
-- Raises     OD013 NotOwner, OD029 UnknownPolicy, OD028 InUse
create or replace function odc.delete_policy(p_actor jsonb, p_name text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_policy json;
    v_users  text;
begin
    perform _take_turn(p_now);
    perform _check_operator(p_actor, 'delete policies');
    perform _refuse_no_policy(p_name);
    perform from policy where name = p_name for update;
    select string_agg(p.name, ', ' order by p.name) into v_users from partition as p where p.policy = p_name;
    if v_users is not null or p_name = 'odc' then
        raise exception using errcode = 'OD028',
            message = case when v_users is null then 'policy "odc" cannot be deleted: new partitions use it'
                           else format('policy "%s" is in use by partition %s', p_name, v_users) end,
            hint = case when v_users is null then 'Keep it; it costs nothing.'
                        else 'Give the partition another policy: odcctl partition edit NAME --policy POLICY.' end;
    end if;
    v_policy := list_policies(array[p_name])::json -> 0;
    delete from policy where name = p_name;
    insert into event (at, kind, actor, detail)
    values (p_now, 'policy_deleted', p_actor ->> 'user', v_policy::jsonb);
    return v_policy;
end;
$$;
