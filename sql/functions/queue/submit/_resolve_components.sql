-- odc._resolve_components: the shape of a heterogeneous job: that of each component, and what they ask for together.
-- Arguments  p_ask  the job as submitted; its "components" are requests like that of a job, without partitions and booking
--            p_partition_ids  where it may run
-- Returns    the shape, with a null id
-- Raises     as _resolve_shape, naming the component; OD010 BadRequest: their number; OD016 NotImplementedYet: several
--            partitions, a range of nodes, or topology blocks; OD008 NeverFits: each fits, but not all together
create or replace function odc._resolve_components(p_ask jsonb, p_partition_ids integer[])
returns shape
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_count constant integer := jsonb_array_length(p_ask -> 'components');
    v_own   constant text[] := '{node_count,gpus_per_node,gpu_type,cpus_per_node,mem_per_node_mib,exclusive,constraint_expr,
                                 node_list,exclude_nodes,tmp_per_node_mib}';
    v_parts shape[] := '{}';
    v_part  shape;
    v_whole shape;
    v_hint  text;
begin
    if v_count < 2 or v_count > 128 then
        raise exception using errcode = 'OD010',
            message = format('a heterogeneous job has 2 to 128 components, not %s', v_count),
            hint = 'Leave the colons (:) or the hetjob lines out, or submit several jobs.';
    end if;
    if cardinality(p_partition_ids) > 1 then
        raise exception using errcode = 'OD016',
            message = 'a heterogeneous job names one partition', hint = 'Leave the other partitions out.';
    end if;
    for v_at in 0..v_count - 1 loop
        begin
            v_part := _resolve_shape(jsonb_build_object('booking', p_ask -> 'booking')
                                     || (p_ask -> 'components' -> v_at) - 'components', p_partition_ids);
            if v_part.node_count_max is not null then
                raise exception using errcode = 'OD016',
                    message = 'a component of a heterogeneous job has a fixed number of nodes',
                    hint = 'Give a single number with --nodes.';
            elsif v_part.switches is not null then
                raise exception using errcode = 'OD016',
                    message = 'a component of a heterogeneous job cannot use --switches',
                    hint = 'Leave --switches out.';
            end if;
        exception when others then
            if sqlstate not like 'OD%' then
                raise;
            end if;
            get stacked diagnostics v_hint = pg_exception_hint;
            raise exception using errcode = sqlstate, message = format('component %s: %s', v_at, sqlerrm), hint = v_hint;
        end;
        v_parts := v_parts || v_part;
    end loop;
    v_whole.partition_ids := p_partition_ids;
    v_whole.exclusive := false;
    v_whole.booking_id := v_parts[1].booking_id;
    select least(sum(c.node_count), 2147483647), max(c.gpus_per_node), max(c.cpus_per_node), max(c.mem_per_node_mib),
           max(c.tmp_per_node_mib),
           case when count(distinct c.gpu_type) = 1 and count(*) filter (where c.gpus_per_node > 0 and c.gpu_type is null) = 0
                then min(c.gpu_type) end,
           jsonb_agg((select jsonb_object_agg(k, to_jsonb(c) -> k) from unnest(v_own) as k where to_jsonb(c) -> k <> 'null')
                     order by c.ordinality)
      into v_whole.node_count, v_whole.gpus_per_node, v_whole.cpus_per_node, v_whole.mem_per_node_mib,
           v_whole.tmp_per_node_mib, v_whole.gpu_type, v_whole.components
      from unnest(v_parts) with ordinality as c;
    select nullif(jsonb_object_agg(l.name, l.n), '{}') into v_whole.licences
      from (select e.key as name, sum(e.value::bigint) as n
              from unnest(v_parts) as c cross join lateral jsonb_each_text(c.licences) as e group by e.key) as l;
    if v_whole.licences is not null then
        perform _check_licences(v_whole.licences);
    end if;
    perform _check_max_nodes(p_partition_ids, v_whole.node_count);
    perform _check_together(v_whole);
    return v_whole;
end;
$$;
