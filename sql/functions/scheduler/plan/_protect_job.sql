-- odc._protect_job: the planned start of a job that does not fit now, and the jobs that must end for it. If its QOS
-- preempts others, it may start earlier by ending some of them. The first releases of running jobs are enough, mostly:
-- it reads more when the walk over time needs them.
-- Arguments  p_may_end  it may end others;  p_read_all  its class may, so all releases are read
--            p_qos_id, p_node_ids  as for _plan_preempt;  p_digest  whether to compute digests
--            p_release_*  releases read so far (p_release_ats null: none), and the digest of the first ones
--            p_first_ends  how many of them were wanted;  p_victims  jobs that this plan ends, four values each, see Returns
--            the others  as for _planned_start
-- Returns    as _planned_start; victims: four values per job to end: job, for which job, cost, end of its grace; null: none
--            release_*, first_ends: as the arguments, if more releases were read, or the victims' were changed; else null
create or replace function odc._protect_job(
    p_now timestamptz, p_job_id bigint, p_may_end boolean, p_read_all boolean, p_qos_id integer, p_without bigint[], p_digest boolean,
    p_node_ids integer[], p_alt_from integer, p_alt_to integer, p_group_from integer[], p_group_to integer[], p_alt_groups integer[],
    p_blocks integer[], p_blocks_most integer, p_lapse bigint, p_node_groups integer[], p_free bigint[], p_max_level integer,
    p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[], p_group_domains integer[],
    p_count integer, p_gpus integer, p_cpus integer, p_mem integer, p_exclusive boolean, p_limit bigint, p_allow boolean[],
    p_booking integer, p_release_ats bigint[], p_release_nodes integer[], p_release_gpus integer[], p_release_cpus integer[],
    p_release_mems integer[], p_release_to bigint, p_first_ends integer, p_release_digest bigint,
    p_allocs bigint[], p_points bigint[], p_heads bigint[], p_victims bigint[], p_not_before bigint,
    out at bigint, out fit integer[], out then_gpus integer[], out then_cpus integer[], out then_mems integer[],
    out fitting integer, out victims bigint[], out release_ats bigint[], out release_nodes integer[], out release_gpus integer[],
    out release_cpus integer[], out release_mems integer[], out release_to bigint, out first_ends integer, out release_digest bigint)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_variable
declare
    v_few constant integer := 4;  v_soon constant integer := 300;  v_more constant integer := 20;
    v_start record;  v_ended record;  v_read boolean := false;
begin
    if p_release_ats is null or (p_release_to is not null and (p_read_all or (p_count > v_few and p_first_ends <= v_soon))) then
        v_read := true;
        p_first_ends := case when p_read_all then null when p_count <= v_few then v_soon else v_more * v_soon end;
        select coalesce(r.ats, '{}'), r.positions, r.gpus, r.cpus, r.mems, r.complete_to,
               case when p_digest then hash_record_extended(r, p_release_digest) end
          into p_release_ats, p_release_nodes, p_release_gpus, p_release_cpus, p_release_mems, p_release_to, p_release_digest
          from _plan_releases(p_now, p_node_ids, p_without, null, null, p_first_ends) as r;
    end if;
    loop
        v_start := _planned_start(
            p_alt_from, p_alt_to, p_group_from, p_group_to, p_alt_groups, p_blocks, p_blocks_most, p_lapse, p_node_groups, p_free,
            p_max_level, p_group_gpus, p_group_cpus, p_group_mems, p_group_domains, p_count, p_gpus, p_cpus, p_mem, p_exclusive, p_limit,
            p_allow, p_booking, p_release_ats, p_release_nodes, p_release_gpus, p_release_cpus, p_release_mems, p_release_to,
            p_allocs, p_points, p_heads, p_not_before);
        exit when v_start.at is not null or not v_start.short;
        v_read := true;
        p_first_ends := v_more * p_first_ends;
        select coalesce(r.ats, '{}'), r.positions, r.gpus, r.cpus, r.mems, r.complete_to
          into p_release_ats, p_release_nodes, p_release_gpus, p_release_cpus, p_release_mems, p_release_to
          from _plan_releases(p_now, p_node_ids, p_without, _every(p_victims, 4, 1), _every(p_victims, 4, 4), p_first_ends) as r;
    end loop;
    at := v_start.at;  fit := v_start.fit;  fitting := v_start.fitting;
    then_gpus := v_start.then_gpus;  then_cpus := v_start.then_cpus;  then_mems := v_start.then_mems;
    if p_may_end then
        v_ended := _plan_preempt(
            p_now, p_job_id, p_qos_id, coalesce(p_without, '{}') || _every(p_victims, 4, 1), at, p_node_ids,
            p_alt_from, p_alt_to, p_group_from, p_group_to, p_alt_groups,
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
            v_read := true;  p_first_ends := null;  p_victims := p_victims || victims;
            select coalesce(r.ats, '{}'), r.positions, r.gpus, r.cpus, r.mems, r.complete_to
              into p_release_ats, p_release_nodes, p_release_gpus, p_release_cpus, p_release_mems, p_release_to
              from _plan_releases(p_now, p_node_ids, p_without, _every(p_victims, 4, 1), _every(p_victims, 4, 4), null) as r;
        end if;
    end if;
    if v_read then
        release_ats := p_release_ats;  release_nodes := p_release_nodes;  release_gpus := p_release_gpus;  release_cpus := p_release_cpus;
        release_mems := p_release_mems;  release_to := p_release_to;  first_ends := p_first_ends;  release_digest := p_release_digest;
    end if;
end;
$$;
