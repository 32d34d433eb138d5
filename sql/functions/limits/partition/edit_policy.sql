-- odc.edit_policy: change a policy, by an operator; it applies from the next pass on.
-- Arguments  p_actor    {user, uid, operator}
--            p_changes  see _edit_policy
-- Returns    the policy as JSON text
-- Locks      the turn; policy
-- Raises     OD013 NotOwner, OD029 UnknownPolicy, OD010 BadRequest
create or replace function odc.edit_policy(p_actor jsonb, p_name text, p_changes jsonb, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    y        policy;
    v_before jsonb;
begin
    perform _take_turn(p_now);
    perform _check_operator(p_actor, 'change policies');
    perform _refuse_no_policy(p_name);
    select * into y from policy where name = p_name for update;
    v_before := list_policies(array[p_name])::jsonb -> 0;
    y := _edit_policy(y, p_changes);
    update policy
       set ordering = y.ordering, max_wait_s = y.max_wait_s, backfill = y.backfill, plan_depth = y.plan_depth
     where name = p_name;
    insert into event (at, kind, actor, detail)
    select p_now, 'policy_edited', p_actor ->> 'user',
           jsonb_build_object('name', p_name, 'old', jsonb_object_agg(b.key, b.value), 'new', jsonb_object_agg(b.key, a.value))
      from jsonb_each(v_before) as b
      join jsonb_each(list_policies(array[p_name])::jsonb -> 0) as a on a.key = b.key
     where a.value <> b.value
    having count(*) > 0;
    perform _wake();
    return list_policies(array[p_name])::json -> 0;
end;
$$;
