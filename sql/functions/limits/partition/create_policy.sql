-- odc.create_policy: create a policy, by an operator.
-- Arguments  p_actor    {user, uid, operator}
--            p_like     the policy to copy from; null: none, and p_changes must have the ordering
--            p_changes  {ordering, max_wait_s, backfill, plan_depth}
-- Returns    the policy as JSON text
-- Locks      the turn
-- Raises     OD013 NotOwner, OD029 UnknownPolicy, OD028 InUse, OD010 BadRequest
create or replace function odc.create_policy(p_actor jsonb, p_name text, p_like text, p_changes jsonb, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    y policy;
begin
    perform _take_turn(p_now);
    perform _check_operator(p_actor, 'create policies');
    if p_like is not null then
        perform _refuse_no_policy(p_like);
        select * into y from policy where name = p_like;
    end if;
    y := _edit_policy(y, p_changes);
    if p_name !~ '^[A-Za-z0-9._-]{1,100}$' or y.ordering is null then
        raise exception using errcode = 'OD010',
            message = case when y.ordering is null then 'a policy needs an ordering'
                           else format('"%s" is not a valid policy name', left(p_name, 100)) end,
            hint = 'Orderings: fifo, multifactor, sjf, saf, wfp3, odc. A name has letters, digits, dots, hyphens, underscores.';
    end if;
    insert into policy (name, ordering, max_wait_s, backfill, plan_depth)
    values (p_name, y.ordering, y.max_wait_s, y.backfill, y.plan_depth)
    on conflict do nothing;
    if not found then
        raise exception using errcode = 'OD028',
            message = format('policy "%s" already exists', p_name),
            hint = format('Change it: odcctl policy edit %s.', p_name);
    end if;
    insert into event (at, kind, actor, detail)
    values (p_now, 'policy_created', p_actor ->> 'user', list_policies(array[p_name])::jsonb -> 0);
    return list_policies(array[p_name])::json -> 0;
end;
$$;
