-- odc._edit_partition: the partition with these changes applied; everything else stays.
-- Arguments  p_changes  {state, is_default, policy, placement, tier, max_time_limit_s,
--                       default_time_limit_s, max_nodes, def_mem_per_cpu_mib}; null removes a setting;
--                       all_nodes, node_list are ignored here
-- Raises     OD029 UnknownPolicy, OD010 BadRequest
create or replace function odc._edit_partition(p_partition partition, p_changes jsonb)
returns partition
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    p        partition := p_partition;
    v_wrong  text;
begin
    if p_changes ? 'policy' then
        perform _refuse_no_policy(p_changes ->> 'policy');
    end if;
    select string_agg(format('%s %s', c.key, c.value), ', ' order by c.key) into v_wrong
      from jsonb_each_text(p_changes) as c (key, value)
     where case c.key
               when 'state' then coalesce(c.value, '') not in ('UP', 'DOWN', 'DRAIN', 'INACTIVE')
               when 'placement' then coalesce(c.value, '') not in ('pack', 'spread')
               when 'is_default' then coalesce(c.value, '') <> 'true'
               when 'tier' then c.value is null or c.value::bigint not between 0 and 65533
               when 'max_time_limit_s' then c.value::bigint not between 1 and 2147483646
               when 'default_time_limit_s' then c.value::bigint not between 1 and 2147483646
               when 'max_nodes' then c.value::bigint not between 1 and 2147483647
               when 'def_mem_per_cpu_mib' then c.value::bigint not between 1 and 2147483647
               else false end;
    if v_wrong is not null then
        raise exception using errcode = 'OD010',
            message = format('a partition cannot have %s', v_wrong),
            hint = 'States: UP, DOWN, DRAIN, INACTIVE. Placement: pack, spread. Tier: 0 to 65533. '
                   'Limits are above 0. To change the default partition, make another partition the default.';
    end if;
    p.state := coalesce((p_changes ->> 'state')::partition_state, p.state);
    p.is_default := coalesce((p_changes ->> 'is_default')::boolean, p.is_default);
    p.policy := coalesce(p_changes ->> 'policy', p.policy);
    p.placement := coalesce(p_changes ->> 'placement', p.placement);
    p.tier := coalesce((p_changes ->> 'tier')::integer, p.tier);
    p.max_time_limit_s := case when p_changes ? 'max_time_limit_s' then (p_changes ->> 'max_time_limit_s')::integer
                               else p.max_time_limit_s end;
    p.default_time_limit_s := case when p_changes ? 'default_time_limit_s' then (p_changes ->> 'default_time_limit_s')::integer
                                   else p.default_time_limit_s end;
    p.max_nodes := case when p_changes ? 'max_nodes' then (p_changes ->> 'max_nodes')::integer else p.max_nodes end;
    p.def_mem_per_cpu_mib := case when p_changes ? 'def_mem_per_cpu_mib' then (p_changes ->> 'def_mem_per_cpu_mib')::integer
                                  else p.def_mem_per_cpu_mib end;
    if p.default_time_limit_s > p.max_time_limit_s then
        raise exception using errcode = 'OD010',
            message = format('the default time limit %s exceeds the maximum of %s', _duration(p.default_time_limit_s),
                             _duration(p.max_time_limit_s)),
            hint = 'Lower the default, or raise the maximum.';
    end if;
    if p.is_default and p.state in ('DRAIN', 'INACTIVE') then
        raise exception using errcode = 'OD012',
            message = format('partition "%s" is the default one, and would accept no jobs in state %s', p.name, p.state),
            hint = 'Make another partition the default first.';
    end if;
    return p;
end;
$$;
