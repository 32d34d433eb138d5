-- odc._protect_job: the planned start of a job that does not fit now, and the jobs that must end for it. If its QOS
-- preempts others, it may start earlier by ending some of them.
-- Arguments  p_preempts  whether it may end others;  p_qos_id, p_spare, p_node_ids  as for _plan_preempt
--            the others  as for _planned_start
-- Returns    as _planned_start; victims: four values per job to end: job, for which job, cost, end of its grace; null: none
create or replace function odc._protect_job(
    p_now timestamptz, p_job_id bigint, p_preempts boolean, p_qos_id integer, p_spare bigint[], p_node_ids integer[],
    p_alt_from integer, p_alt_to integer, p_group_from integer[], p_group_to integer[], p_alt_groups integer[],
    p_blocks integer[], p_blocks_most integer, p_lapse bigint, p_node_groups integer[], p_free bigint[], p_max_level integer,
    p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[], p_group_domains integer[],
    p_count integer, p_gpus integer, p_cpus integer, p_mem integer, p_exclusive boolean, p_limit bigint, p_allow boolean[], p_booking integer,
    p_release_ats bigint[], p_release_nodes integer[], p_release_gpus integer[], p_release_cpus integer[],
    p_release_mems integer[], p_release_to bigint, p_allocs bigint[], p_points bigint[], p_heads bigint[], p_not_before bigint,
    out at bigint, out fit integer[], out then_gpus integer[], out then_cpus integer[], out then_mems integer[],
    out fitting integer, out short boolean, out victims bigint[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_variable
declare
    v_start record;  v_ended record;
begin
    v_start := _planned_start(
        p_alt_from, p_alt_to, p_group_from, p_group_to, p_alt_groups, p_blocks, p_blocks_most, p_lapse, p_node_groups, p_free,
        p_max_level, p_group_gpus, p_group_cpus, p_group_mems, p_group_domains, p_count, p_gpus, p_cpus, p_mem, p_exclusive, p_limit,
        p_allow, p_booking, p_release_ats, p_release_nodes, p_release_gpus, p_release_cpus, p_release_mems, p_release_to,
        p_allocs, p_points, p_heads, p_not_before);
    at := v_start.at;  fit := v_start.fit;  fitting := v_start.fitting;  short := v_start.short and at is null;
    then_gpus := v_start.then_gpus;  then_cpus := v_start.then_cpus;  then_mems := v_start.then_mems;
    if short or not p_preempts then
        return;
    end if;
    v_ended := _plan_preempt(
        p_now, p_job_id, p_qos_id, p_spare, at, p_node_ids, p_alt_from, p_alt_to, p_group_from, p_group_to, p_alt_groups,
        p_blocks, p_blocks_most, p_node_groups, p_free, p_group_gpus, p_group_cpus, p_group_mems, p_group_domains,
        p_count, case when p_exclusive then -1 else p_gpus end, p_cpus, p_mem, p_limit, p_allow, p_booking,
        p_release_ats, p_release_nodes, p_release_gpus, p_release_cpus, p_release_mems, p_allocs, p_points, p_heads);
    if v_ended.victims is not null then
        at := v_ended.at;  fit := v_ended.fit;
        then_gpus := v_ended.then_gpus;  then_cpus := v_ended.then_cpus;  then_mems := v_ended.then_mems;
        victims := array(
            select w.value
              from unnest(v_ended.victims, v_ended.costs, v_ended.ends) with ordinality as u (job_id, cost, until, ord)
             cross join lateral unnest(array[u.job_id, p_job_id, u.cost, u.until]) with ordinality as w (value, ord)
             order by u.ord, w.ord);
    end if;
end;
$$;
