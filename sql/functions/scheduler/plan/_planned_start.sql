-- odc._planned_start: the planned start of a job: the earliest of its alternatives. See _earliest_start.
-- Arguments  p_alt_from, p_alt_to  the job's alternatives;  p_group_from, p_group_to, p_alt_groups  per alternative its groups
--            p_count … p_exclusive  nodes, amounts of one member;  the others  as for _earliest_start
-- Returns    as _earliest_start; needs_more: some alternative needs more releases
create or replace function odc._planned_start(
    p_alt_from integer, p_alt_to integer, p_group_from integer[], p_group_to integer[], p_alt_groups integer[],
    p_blocks integer[], p_blocks_most integer, p_lapse bigint, p_node_groups integer[], p_free bigint[], p_max_level integer,
    p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[], p_group_domains integer[],
    p_count integer, p_gpus integer, p_cpus integer, p_mem integer, p_exclusive boolean, p_limit_us bigint, p_allow boolean[],
    p_booking integer,
    p_release_ats bigint[], p_release_nodes integer[], p_release_gpus integer[], p_release_cpus integer[],
    p_release_mems integer[], p_release_to bigint, p_allocs bigint[], p_points bigint[], p_protected bigint[], p_not_before bigint,
    p_from bigint,
    out at bigint, out fit integer[], out then_gpus integer[], out then_cpus integer[], out then_mems integer[],
    out fitting integer, out needs_more boolean)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_start record;  v_changes record;
begin
    select * into v_changes from _plan_changes(p_protected, p_allocs);
    needs_more := false;
    for v_alt in p_alt_from..p_alt_to loop
        v_start := _earliest_start(
            p_alt_groups[p_group_from[v_alt]:p_group_to[v_alt]],
            p_count > 1 and (p_exclusive or p_gpus = p_group_gpus[p_alt_groups[p_group_to[v_alt]]]),
            p_blocks, p_blocks_most, p_lapse, p_node_groups, p_free, p_max_level,
            p_group_gpus, p_group_cpus, p_group_mems, p_group_domains,
            p_count, case when p_exclusive then -1 else p_gpus end, p_cpus, p_mem, p_limit_us, p_allow, p_booking,
            p_release_ats, p_release_nodes, p_release_gpus, p_release_cpus, p_release_mems, p_release_to,
            v_changes.ats, v_changes.froms, v_changes.counts, p_allocs, p_points, p_not_before, p_from);
        needs_more := needs_more or v_start.needs_more;
        if at is null or v_start.at < at then
            at := v_start.at;  fit := v_start.fit;  fitting := v_start.fitting;
            then_gpus := v_start.then_gpus;  then_cpus := v_start.then_cpus;  then_mems := v_start.then_mems;
        end if;
    end loop;
end;
$$;
