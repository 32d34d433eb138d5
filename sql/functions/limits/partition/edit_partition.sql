-- odc.edit_partition: change a partition, by an operator.
-- Arguments  p_actor    {user, uid, operator}
--            p_changes  see _edit_partition, _set_partition_nodes, _write_limits (limits); and plan_depth, of its policy
-- Returns    the partition as JSON text
-- Locks      the turn; partition; node_free
-- Raises     OD013 NotOwner, OD001 UnknownPartition, OD007 UnknownNode, OD029 UnknownPolicy, OD010 BadRequest,
--            OD012 WrongState
create or replace function odc.edit_partition(p_actor jsonb, p_name text, p_changes jsonb, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_old    partition;
    v_new    partition;
    v_before jsonb;
    v_after  jsonb;
begin
    perform _check_operator(p_actor, 'change partitions');
    perform _take_turn(p_now);
    select * into v_old from partition where name = p_name for update;
    if not found then
        raise exception using errcode = 'OD001',
            message = format('partition "%s" does not exist', p_name),
            hint = format('Partitions: %s.', (select string_agg(p.name, ', ' order by p.name) from partition as p));
    end if;
    v_before := list_partitions(array[p_name])::jsonb -> 0;
    v_new := _edit_partition(v_old, p_changes);
    if v_new.is_default and not v_old.is_default then
        update partition set is_default = false where is_default;
    end if;
    update partition
       set state = v_new.state, is_default = v_new.is_default, policy = v_new.policy, placement = v_new.placement,
           tier = v_new.tier, max_time_limit_s = v_new.max_time_limit_s,
           default_time_limit_s = v_new.default_time_limit_s, max_nodes = v_new.max_nodes,
           def_mem_per_cpu_mib = v_new.def_mem_per_cpu_mib
     where id = v_old.id;
    perform _set_partition_nodes(v_old.id, p_changes);
    perform _write_limits('partition', v_old.id, coalesce(nullif(p_changes -> 'limits', 'null'), '{}'));
    if p_changes ? 'plan_depth' then
        perform _set_partition_depth(p_actor, v_new, p_changes, p_now);
    end if;
    perform _check_orders();
    v_after := list_partitions(array[p_name])::jsonb -> 0;
    insert into event (at, kind, actor, detail)
    select p_now, 'partition_edited', p_actor ->> 'user',
           jsonb_build_object('name', p_name, 'old', jsonb_object_agg(b.key, b.value), 'new', jsonb_object_agg(b.key, a.value))
      from jsonb_each(v_before) as b
      join jsonb_each(v_after) as a on a.key = b.key
     where a.value <> b.value and b.key not in ('gpus', 'gpus_free', 'gpu_types')
    having count(*) > 0;
    perform _wake();
    return list_partitions(array[p_name])::json -> 0;
end;
$$;
