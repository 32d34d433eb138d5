-- odc._find_components_start: the planned start of a heterogeneous job that does not fit now: the earliest moment found at
-- which each component fits beside those before it. From a first moment on, each component is asked for its earliest start. If
-- that is later, the search begins again there, so it ends at a moment at which all fit. After v_exact questions it makes longer
-- steps: a component that starts later is pinned there, the next ones are asked from there on beside it, and the search begins
-- again at the start of the last one. That may skip a moment at which all fit.
-- Arguments  p_job   the job;  p_shapes  see _load_pass;  p_asked  how many questions this plan has asked
--            the others  as for _find_start
-- Returns    at: null: no such moment was found, or it is now;  asked: p_asked and its own questions
--            apart: it was not found although each component starts at some time by itself: they do not fit beside each other
--            after the last change in sight, or the v_most questions for a job or the v_all questions of a plan were not enough
--            fitting: nodes that fit now, each component by itself;  fit, then_*, victims: null
--            points, protected, allocs: the arrays after all its nodes are pinned, with one protected job for each component
--            releases: as _find_start
create or replace function odc._find_components_start(
    p_now timestamptz, p_job odc.candidate, p_shapes odc.shape_lists, p_windows bigint[], p_without bigint[], p_digest boolean,
    p_node_ids integer[], p_group_from integer[], p_group_to integer[], p_alt_groups integer[], p_blocks integer[],
    p_node_groups integer[], p_free bigint[], p_max_level integer, p_group_gpus integer[], p_group_cpus integer[],
    p_group_mems integer[], p_group_domains integer[], p_releases odc.release_lists,
    p_allocs bigint[], p_points bigint[], p_protected bigint[], p_victims bigint[], p_asked integer,
    out at bigint, out fit integer[], out then_gpus integer[], out then_cpus integer[], out then_mems integer[],
    out fitting integer, out victims bigint[], out points bigint[], out protected bigint[], out allocs bigint[],
    out releases odc.release_lists, out asked integer, out apart boolean)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_variable
declare
    v_exact constant integer := 256;  v_most constant integer := 768;  v_all constant integer := 1536;
    v_far constant bigint := 9000000000000000000;
    v_from constant integer := p_shapes.component_from[p_job.shape];  v_to constant integer := p_shapes.component_to[p_job.shape];
    v_nodes constant integer := cardinality(p_node_ids);
    v_allows boolean[] := '{}';  v_allow_from integer[] := '{}';    -- per component what _allow_lists returned, and where it begins
    v_open bigint := 1;         -- all components are to fit from this moment on; not at once, because then it would start
    v_order integer[] := array(select u from generate_series(v_from, v_to) as u order by u);  v_moved boolean := false;
    v_last bigint;              -- the last change in sight, besides releases
    v_start record;  v_part candidate;  v_first integer;  v_at integer;
begin
    asked := p_asked;  apart := false;  fitting := 0;
    loop
        if p_windows is not null then
            v_open := _limits_open(p_windows, v_open);
            exit when v_open is null;
        end if;
        apart := asked + v_to - v_from >= least(p_asked + v_most, v_all);
        exit when apart;
        at := v_open;  points := p_points;  protected := p_protected;  allocs := p_allocs;  fitting := 0;
        foreach v_at in array v_order loop
            if p_shapes.component_lists[v_at] is not null and v_allow_from[v_at] is null then
                v_allow_from[v_at] := cardinality(v_allows);
                v_allows := v_allows || _allow_lists(p_node_ids, p_shapes.component_lists[v_at]);
            end if;
            v_part := _describe_job(p_shapes, p_job.job_id, p_job.class, p_shapes.component_shapes[v_at], p_job.limit_s, 0);
            v_start := _find_start(
                p_now, v_part, false, false, null, null, array[at, v_far], p_without, p_digest, p_node_ids, p_group_from,
                p_group_to, p_alt_groups, p_blocks, p_node_groups, p_free, p_max_level, p_group_gpus, p_group_cpus, p_group_mems,
                p_group_domains, case when v_allow_from[v_at] >= 0
                                      then v_allows[v_allow_from[v_at] + 1:v_allow_from[v_at] + v_nodes] end, p_releases,
                allocs, points, protected, p_victims);
            asked := asked + 1;
            if (v_start.releases).ats is not null then
                p_releases := v_start.releases;  releases := p_releases;
            end if;
            fitting := fitting + least(coalesce(v_start.fitting, 0), v_part.least);
            at := v_start.at;
            exit when at is null or (at > v_open and asked - p_asked < v_exact);
            v_first := cardinality(points) + 1;
            protected := protected || array[
                case when v_part.exclusive then -1 else v_part.gpus end, v_part.cpus, v_part.mem, v_first,
                v_first + 9 * cardinality(v_start.fit), v_first, at, at + p_job.limit_us, cardinality(allocs) + 1, v_part.least];
            points := _pin_nodes(points, protected, v_start.fit, v_start.then_gpus, v_start.then_cpus, v_start.then_mems,
                                 p_node_groups, p_group_gpus, p_group_cpus, p_group_mems);
            allocs := _plan_allocations(allocs, points, protected, cardinality(protected) / 10, p_node_groups, p_group_gpus,
                                        p_group_cpus, p_group_mems);
        end loop;
        if at is null and v_at <> v_order[1] and not v_moved then
            -- If it does not start without those before it either, its nodes are not available.
            v_order := v_at || array_remove(v_order, v_at);  v_moved := true;
            continue;
        end if;
        apart := at is null and v_at <> v_order[1];
        if at is null or at = v_open then
            -- A job that fits now, but found no nodes, claims none: nothing that ends would help it.
            at := nullif(at, 1);
            return;
        end if;
        v_last := coalesce(v_last, _last_change(p_points, cardinality(p_node_ids), p_protected, p_allocs));
        apart := p_releases.complete_to is null and v_open > greatest(v_last, p_releases.ats[cardinality(p_releases.ats)]);
        exit when apart;
        v_open := at;
    end loop;
    at := null;
end;
$$;
