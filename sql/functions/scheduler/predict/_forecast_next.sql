-- odc._forecast_next: go on in a pass of a forecast to the next job that may start or becomes protected. The first job of each
-- set of overlapping nodes that finds none is protected there. The limits that a waiting job needs are kept
-- from the jobs behind it.
-- Arguments  p_walk  1 class to consider, 0: go on in the order of backfill; 2 position in that order, -1: before it; 3 whether
--                    classes were deferred to it; 4 number of shapes that may find nodes; 5 number of protected jobs; 6 result: 0
--                    none is left, 1 a job may start, 2 a job becomes protected; 7 its class; 8 not used; then of a row per group:
--                    the protected job that claims it; per shape: jobs with limits from this on cannot start; per limit: what
--                    is kept of it; then the nodes of the job that may start, see _forecast_gang
--            p_free, p_nodes  see _forecast_lists; number of nodes;  p_fulls … p_needs  see _forecast_shapes
--            p_limits, p_uses, p_use_from, p_use_to  number of limits; what a class uses of them: its part of p_uses, see
--                    _forecast_limits
--            p_limits_s, p_first_jobs, p_afters, p_defers, p_backs  per class: limit, first job, next class (0: none), whether the
--                    policy has another order for backfill; the classes in that order
create or replace function odc._forecast_next(
    p_walk integer[], p_free integer[], p_nodes integer, p_fulls integer[], p_domains integer[], p_class_shapes integer[],
    p_counts integer[], p_alt_from integer[], p_alt_to integer[], p_group_from integer[], p_group_to integer[], p_alt_groups integer[],
    p_needs integer[], p_limits_s integer[], p_first_jobs integer[], p_afters integer[], p_defers boolean[], p_backs integer[],
    p_limits integer, p_uses integer[], p_use_from integer[], p_use_to integer[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_first constant integer := 3 * p_nodes - 63;  v_whole constant integer := 3 * p_nodes + 64 * cardinality(p_fulls);
    v_sum constant integer := v_whole + cardinality(p_fulls);  v_spare constant integer := v_sum + cardinality(p_fulls);
    v_dead constant integer := 8 + cardinality(p_fulls);  v_limits_at constant integer := v_dead + cardinality(p_counts);
    v_found constant integer := v_limits_at + p_limits;  v_left constant integer := cardinality(p_free) + 1;
    v_class integer := p_walk[1];  v_place integer := p_walk[2];  v_protected integer := p_walk[5];
    v_shape integer;  v_from integer;  v_to integer;  v_claimed boolean;  v_picks integer[];
    v_group integer;  v_need integer;  v_node integer;  v_lacking boolean := false;
begin
    p_walk[6] := 0;
    while p_walk[4] > 0 loop
        if v_class = 0 then
            exit when v_place < 0 and p_walk[3] = 0;
            v_place := greatest(0, v_place) + 1;
            exit when v_place > cardinality(p_backs);
            v_class := case when p_first_jobs[p_backs[v_place]] > 0 and p_defers[p_backs[v_place]] then p_backs[v_place] else 0 end;
            continue when v_class = 0;
        end if;
        v_shape := p_class_shapes[v_class];
        if p_walk[v_dead + v_shape] <= p_limits_s[v_class] then
            v_class := case when v_place < 0 then p_afters[v_class] else 0 end;
            continue;
        end if;
        if p_limits > 0 then
            v_lacking := false;
            for i in p_use_from[v_class]..p_use_to[v_class] by 3 loop
                v_lacking := v_lacking or p_free[v_left + p_uses[i]] - p_walk[v_limits_at - p_uses[i]] < p_uses[i + 2];
            end loop;
            if v_lacking then
                p_walk := _forecast_keep(p_walk, v_limits_at, p_uses, p_use_from[v_class], p_use_to[v_class]);
                v_class := case when v_place < 0 then p_afters[v_class] else 0 end;
                continue;
            end if;
        end if;
        v_from := p_group_from[p_alt_from[v_shape]];  v_to := p_group_to[p_alt_to[v_shape]];  v_claimed := false;
        if v_protected > 0 then
            for i in v_from..v_to loop
                v_claimed := v_claimed or p_walk[8 + p_alt_groups[i]] > 0;
            end loop;
            if v_claimed and v_place < 0 and p_defers[v_class] then
                p_walk[3] := 1;  v_class := p_afters[v_class];
                continue;
            end if;
        end if;
        v_picks := null;
        if p_counts[v_shape] > 1 then
            v_picks := _forecast_gang(p_counts[v_shape], p_alt_from[v_shape], p_alt_to[v_shape], p_group_from, p_group_to, p_alt_groups,
                                      p_needs, p_fulls, p_domains, p_free, p_nodes);
        else
            for i in v_from..v_to loop
                v_group := p_alt_groups[i];  v_need := p_needs[i];
                continue when p_free[v_sum + v_group] < v_need;
                for level in v_need..p_fulls[v_group] - 1 loop
                    v_node := p_free[v_first + 64 * v_group + level];
                    exit when v_node > 0;
                end loop;
                if v_need < p_fulls[v_group] and v_node > 0 then
                    v_picks := array[v_group, v_node, v_need];
                elsif p_free[v_whole + v_group] > 0 then
                    v_picks := case when v_need = p_fulls[v_group] then array[v_group, 0, 1]
                                    else array[v_group, -p_free[v_spare + v_group], v_need] end;
                end if;
                exit when v_picks is not null;
            end loop;
        end if;
        if v_picks[1] is not null then
            p_walk := p_walk[:v_found] || v_picks;
            p_walk[6] := 1;  p_walk[7] := v_class;
            exit;
        end if;
        p_walk[v_dead + v_shape] := -1;  p_walk[4] := p_walk[4] - 1;
        if not v_claimed then
            v_protected := v_protected + 1;
            for i in v_from..v_to loop
                p_walk[8 + p_alt_groups[i]] := v_protected;
            end loop;
            p_walk[5] := v_protected;  p_walk[6] := 2;  p_walk[7] := v_class;
            if p_limits > 0 then
                p_walk := _forecast_keep(p_walk, v_limits_at, p_uses, p_use_from[v_class], p_use_to[v_class]);
            end if;
        end if;
        v_class := case when v_place < 0 then p_afters[v_class] else 0 end;
        exit when not v_claimed;
    end loop;
    p_walk[1] := v_class;  p_walk[2] := v_place;
    return p_walk;
end;
$$;
