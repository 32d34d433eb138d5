-- odc.create_partition: create a partition, by an operator.
-- Arguments  p_actor    {user, uid, operator}
--            p_changes  as in edit_partition; without all_nodes and node_list it has no nodes
-- Returns    the partition as JSON text
-- Locks      the turn; partition; node_free
-- Raises     OD013 NotOwner, OD028 InUse, and as edit_partition
create or replace function odc.create_partition(p_actor jsonb, p_name text, p_changes jsonb, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _check_operator(p_actor, 'create partitions');
    perform _take_turn(p_now);
    if p_name !~ '^[A-Za-z0-9._-]{1,100}$' then
        raise exception using errcode = 'OD010',
            message = format('"%s" is not a valid partition name', left(p_name, 100)),
            hint = 'A name has 1 to 100 letters, digits, dots, hyphens and underscores.';
    end if;
    if exists (select from partition as p where p.name = p_name) then
        raise exception using errcode = 'OD028',
            message = format('partition "%s" already exists', p_name),
            hint = format('Change it: odcctl partition edit %s.', p_name);
    end if;
    insert into partition (name) values (p_name);
    insert into event (at, kind, actor, detail)
    values (p_now, 'partition_created', p_actor ->> 'user', jsonb_build_object('name', p_name));
    return edit_partition(p_actor, p_name, p_changes, p_now);
end;
$$;
