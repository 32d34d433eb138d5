-- odc._earliest_start: the earliest start of a job that cannot start now, and the nodes that fit it then.
-- It walks time from one change to the next: running jobs and this pass's starts release their resources when their
-- limits end, protected jobs take and release, bookings close and open nodes.
-- A node fits at a moment if its free amounts are enough then, and at every later start of a protected job that the
-- job would still run into. Moments are microseconds from the pass's time.
-- Arguments  p_groups, p_in_domain  groups that the job may use; whether its nodes must share an EFA domain
--            p_blocks, p_blocks_most, p_lapse  per node its topology block; maximum number of blocks until p_lapse (null:
--                                   forever); p_blocks_most null: any number. With it no spare nodes are returned
--            p_node_groups, p_free, p_max_level, p_group_*  see _free_lists
--            p_count … p_limit_us      nodes, amounts of one member (p_gpus -1: all of the node), time limit
--            p_allow                per node: the job's lists allow it; null: all
--            p_booking              the job runs inside this booking; null: outside of all
--            p_release_*            releases of running jobs, from _plan_releases, in order; complete up to p_release_to
--                                   (null: all)
--            p_change_*, p_allocs   changes by this plan, see _plan_changes;  p_points  see ../README.md
--            p_not_before, p_from   a preemptor keeps the start it was promised; limits let it start from p_from on; null: at once
-- Returns    at: null if there is no such moment; fit: the nodes that fit then, in the order in which they became
--            free; then_*: amounts free on them; fitting: how many fit now; needs_more: no such moment before p_release_to
create or replace function odc._earliest_start(
    p_groups integer[], p_in_domain boolean, p_blocks integer[], p_blocks_most integer, p_lapse bigint, p_node_groups integer[], p_free
    bigint[], p_max_level integer, p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[], p_group_domains integer[],
    p_count integer, p_gpus integer, p_cpus integer, p_mem integer, p_limit_us bigint, p_allow boolean[], p_booking integer, p_release_ats
    bigint[], p_release_nodes integer[], p_release_gpus integer[], p_release_cpus integer[], p_release_mems integer[], p_release_to
    bigint, p_change_ats bigint[], p_change_froms integer[], p_change_counts integer[], p_allocs bigint[], p_points bigint[], p_not_before
    bigint, p_from bigint,
    out at bigint, out fit integer[], out then_gpus integer[], out then_cpus integer[], out then_mems integer[],
    out fitting integer, out needs_more boolean)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_nodes constant integer := cardinality(p_node_groups);  v_cpus constant integer := 2 * v_nodes;  v_mem constant integer := 3 * v_nodes;
    v_releases constant integer := coalesce(cardinality(p_release_ats), 0);
    v_changes constant integer := coalesce(cardinality(p_change_ats), 0);
    v_domains constant integer[] := case when p_in_domain then p_group_domains else array_fill(0, array[cardinality(p_group_gpus)]) end;
    v_usable boolean[];         -- per group
    v_expiry bigint[];          -- per node: until when it fits; -1: it does not fit
    v_list integer[] := '{}';   -- nodes in the order in which they came to fit; some no longer do
    v_counts integer[];         -- per domain, from 0: nodes that fit
    v_touched integer[];  v_touches integer;        -- nodes that changed at v_at
    v_release integer := 1;  v_change integer := 1;  v_node integer;  v_group integer;  v_from integer;  v_sign integer;
    v_at bigint := 0;  v_first constant bigint := greatest(p_not_before, p_from);  v_until bigint;  v_enough boolean;  v_domain integer;
    v_jump record;
begin
    fitting := 0;  needs_more := false;
    v_usable := array_fill(false, array[cardinality(p_group_gpus)]);
    foreach v_group in array p_groups loop
        v_usable[v_group] := true;
    end loop;
    v_expiry := array_fill(-1::bigint, array[v_nodes]);
    v_counts := array_fill(0, array[coalesce((select max(u) from unnest(p_group_domains) as u), 0) + 1]);
    v_touched := _nodes_from_level(p_free, v_nodes, p_groups, p_gpus, p_group_gpus, p_max_level);
    v_touches := cardinality(v_touched);

    loop
        v_enough := false;
        for i in 1..v_touches loop
            v_node := v_touched[i];  v_group := p_node_groups[v_node];  v_until := -1;
            if (case when p_gpus < 0 then p_free[v_nodes + v_node] = p_group_gpus[v_group]
                                         and p_free[v_cpus + v_node] = p_group_cpus[v_group]
                                         and p_free[v_mem + v_node] = p_group_mems[v_group]
                    else p_free[v_nodes + v_node] >= p_gpus and p_free[v_cpus + v_node] >= p_cpus and p_free[v_mem + v_node] >= p_mem end)
               and (p_allow is null or p_allow[v_node]) then
                v_until := 9000000000000000000;
                if p_points[v_node] > 0 or p_booking is not null then
                    v_until := _fits_until(p_points, v_node, v_at, p_gpus, p_cpus, p_mem, p_limit_us, p_booking);
                end if;
            end if;
            v_domain := v_domains[v_group] + 1;
            if v_until >= 0 and v_expiry[v_node] < 0 then
                v_counts[v_domain] := v_counts[v_domain] + 1;  v_list := v_list || v_node;
                v_enough := v_enough or v_counts[v_domain] >= p_count;
            elsif v_until < 0 and v_expiry[v_node] >= 0 then
                v_counts[v_domain] := v_counts[v_domain] - 1;  v_list := array_remove(v_list, v_node);
            end if;
            v_expiry[v_node] := v_until;
        end loop;
        if v_at = 0 then
            fitting := cardinality(v_list);
            if p_from > 0 then
                -- In one step to p_from: nothing before it matters.
                v_jump := _free_from(p_free, p_from, v_usable, p_allow, p_node_groups, p_gpus, p_cpus, p_mem, p_release_ats, p_release_nodes,
                                     p_release_gpus, p_release_cpus, p_release_mems, p_change_ats, p_change_froms, p_change_counts, p_allocs);
                p_free := v_jump.free;  v_touched := v_jump.touched;  v_touches := cardinality(v_touched);  v_release := v_jump.release;
                v_change := v_jump.change;  v_at := p_from;  needs_more := coalesce(v_at >= p_release_to, false);
                continue when not needs_more;  exit;
            end if;
        end if;
        if (v_enough or v_at = p_lapse or v_at = v_first) and v_at >= coalesce(v_first, 0) then
            -- Some nodes may no longer fit.
            foreach v_node in array v_list loop
                if v_expiry[v_node] < v_at then
                    v_domain := v_domains[p_node_groups[v_node]] + 1;
                    v_counts[v_domain] := v_counts[v_domain] - 1;  v_expiry[v_node] := -1;
                    v_list := array_remove(v_list, v_node);
                end if;
            end loop;
            p_blocks_most := case when p_lapse is null or v_at < p_lapse then p_blocks_most end;
            v_domain := _enough_nodes(v_list, v_counts, p_node_groups, v_domains, p_count, p_blocks, p_blocks_most);
            if v_domain is not null then
                at := v_at;
                v_list := array(select l.node from unnest(v_list) with ordinality as l (node, o)
                                 where v_domains[p_node_groups[l.node]] = v_domain order by l.o);
                if p_blocks_most is not null then
                    v_list := _choose_blocks(v_list, p_blocks, p_count, p_blocks_most);
                end if;
                select array_agg(u.node order by u.o), array_agg(p_free[v_nodes + u.node]::integer order by u.o),
                       array_agg(p_free[v_cpus + u.node]::integer order by u.o), array_agg(p_free[v_mem + u.node]::integer order by u.o)
                  into fit, then_gpus, then_cpus, then_mems
                  from unnest(v_list) with ordinality as u (node, o);
                return;
            end if;
        end if;

        -- Go to the next change after which a node may fit; releases before it are only added up.
        v_at := least(p_change_ats[v_change], case when p_blocks_most is not null and p_lapse > v_at then p_lapse end,
                      case when p_not_before > v_at then p_not_before end);
        v_until := coalesce(v_at, 9000000000000000000);
        v_touches := 0;
        while v_release <= v_releases and p_release_ats[v_release] <= v_until loop
            v_node := p_release_nodes[v_release];  v_group := p_node_groups[v_node];
            if v_usable[v_group] and (p_allow is null or p_allow[v_node]) then
                p_free[v_nodes + v_node] := p_free[v_nodes + v_node] + p_release_gpus[v_release];
                p_free[v_cpus + v_node] := p_free[v_cpus + v_node] + p_release_cpus[v_release];
                p_free[v_mem + v_node] := p_free[v_mem + v_node] + p_release_mems[v_release];
                if p_free[v_nodes + v_node] >= p_gpus and p_free[v_cpus + v_node] >= p_cpus and p_free[v_mem + v_node] >= p_mem
                   and (p_gpus >= 0 or p_free[v_nodes + v_node] = p_group_gpus[v_group]
                                       and p_free[v_cpus + v_node] = p_group_cpus[v_group]) then
                    v_touches := v_touches + 1;  v_touched[v_touches] := v_node;
                    v_at := p_release_ats[v_release];  v_until := v_at;
                end if;
            end if;
            v_release := v_release + 1;
        end loop;
        needs_more := coalesce(coalesce(v_at, p_release_to) >= p_release_to, false);
        exit when v_at is null or needs_more;
        while v_change <= v_changes and p_change_ats[v_change] = v_at loop
            v_from := abs(p_change_froms[v_change]);  v_sign := sign(p_change_froms[v_change]);
            for v_alloc in v_from..v_from + 9 * p_change_counts[v_change] - 1 by 9 loop
                v_node := p_allocs[v_alloc];
                if v_usable[p_node_groups[v_node]] and (p_allow is null or p_allow[v_node]) then
                    p_free[v_nodes + v_node] := p_free[v_nodes + v_node] + v_sign * p_allocs[v_alloc + 2];
                    p_free[v_cpus + v_node] := p_free[v_cpus + v_node] + v_sign * p_allocs[v_alloc + 3];
                    p_free[v_mem + v_node] := p_free[v_mem + v_node] + v_sign * p_allocs[v_alloc + 4];
                    v_touches := v_touches + 1;  v_touched[v_touches] := v_node;
                end if;
            end loop;
            v_change := v_change + 1;
        end loop;
    end loop;
end;
$$;
