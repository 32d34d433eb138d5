-- odc._class_caps: how many jobs of each class this walk over the queue can need: as many as the free amounts may start,
-- as many as may become protected or preempt others, and one that shows that the next cannot start. 0: none.
-- Arguments  p_free, p_nodes, p_groups  see _free_lists;  p_without  jobs are left out, which may hide one of a class
--            p_limited  jobs may become protected because they lack a limit, too
--            per shape: p_counts … p_full;  p_group_from, p_group_to, p_alt_groups  per alternative: its groups
--            per class: p_shapes … p_preempts;  see _is_open
create or replace function odc._class_caps(
    p_free bigint[], p_nodes integer, p_groups integer, p_without boolean,
    p_counts integer[], p_gpus integer[], p_cpus integer[], p_exclusives boolean[], p_alt_from integer[], p_alt_to integer[],
    p_group_from integer[], p_group_to integer[], p_alt_groups integer[], p_depths integer[], p_dead integer[], p_full boolean[],
    p_limited boolean, p_shapes integer[], p_limits_s integer[], p_backfill boolean, p_reasons text[], p_later boolean[], p_preempts boolean[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_max_preempt constant integer := 32;
    v_idle constant integer := 7 * p_nodes + 65 * p_groups;
    v_caps integer[];  v_rooms integer[];  v_room bigint;  v_group integer;  v_shape integer;
begin
    for shape in 1..cardinality(p_counts) loop
        v_room := 0;
        if p_dead[shape] >= 0 then
            for i in p_group_from[p_alt_from[shape]]..p_group_to[p_alt_to[shape]] loop
                v_group := v_idle + p_alt_groups[i];
                v_room := v_room + case when p_exclusives[shape] then p_free[v_group]
                                        when p_gpus[shape] > 0 then p_free[v_group + p_groups] / p_gpus[shape]
                                        else p_free[v_group + 2 * p_groups] / p_cpus[shape] end;
            end loop;
            v_room := v_room / p_counts[shape];
        end if;
        v_rooms[shape] := least(v_room + 1, 1000000);
    end loop;
    for class in 1..cardinality(p_shapes) loop
        v_shape := p_shapes[class];
        v_caps[class] := case when not _is_open(p_reasons[class], p_later[class], p_backfill, p_limits_s[class], p_dead[v_shape],
                                                p_full[v_shape], p_preempts[class]) then 0
                              else case when p_limits_s[class] <= p_dead[v_shape] then v_rooms[v_shape] else 1 end
                                   + case when p_full[v_shape] then 0 else p_depths[v_shape] * (1 + p_limited::integer) end
                                   + p_without::integer + case when p_preempts[class] then v_max_preempt else 0 end end;
    end loop;
    return v_caps;
end;
$$;
