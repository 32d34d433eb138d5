-- odc._find_start: the planned start of a job that does not fit now, and the jobs that must end for it. If its QOS
-- preempts others, it may start earlier by ending some of them. The first releases of running jobs are enough, mostly:
-- it reads more when the walk over time needs them.
-- Arguments  p_job  the job;  p_may_end  it may end others;  p_read_all  its class may, so all releases are read
--            p_qos_id, p_node_ids  as for _plan_preempt;  p_digest  whether to compute digests
--            p_releases  read so far, with the digest of the first ones
--            p_victims  jobs that this plan ends, four values each, see Returns
--            p_windows  when limits let it start, see _limit_windows; null: at any time
--            the others  as for _planned_start
-- Returns    as _planned_start; victims: four values per job to end: job, for which job, cost, end of its grace; null: none
--            releases: as the argument, if more of them were read, or the victims' were changed; else null
create or replace function odc._find_start(
    p_now timestamptz, p_job odc.candidate, p_may_end boolean, p_read_all boolean, p_qos_id integer, p_not_before bigint,
    p_windows bigint[], p_without bigint[], p_digest boolean, p_node_ids integer[], p_group_from integer[], p_group_to integer[],
    p_alt_groups integer[], p_blocks integer[], p_node_groups integer[], p_free bigint[], p_max_level integer,
    p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[], p_group_domains integer[], p_allow boolean[],
    p_releases odc.release_lists, p_allocs bigint[], p_points bigint[], p_protected bigint[], p_victims bigint[],
    out at bigint, out fit integer[], out then_gpus integer[], out then_cpus integer[], out then_mems integer[],
    out fitting integer, out victims bigint[], out releases odc.release_lists)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_variable
declare
    v_few constant integer := 4;  v_soon constant integer := 300;  v_more constant integer := 20;
    v_spares constant integer := 16;    -- when limits give something back, most nodes may be free: not all need points
    v_start record;  v_ended record;  v_read boolean := false;  v_open bigint := coalesce(p_not_before, 0);  v_drop integer;
begin
    if p_releases.ats is null or (p_releases.complete_to is not null and (p_read_all or (p_job.least > v_few and p_releases.first_ends <= v_soon))) then
        v_read := true;
        p_releases.first_ends := case when p_read_all then null when p_job.least <= v_few then v_soon else v_more * v_soon end;
        select coalesce(r.ats, '{}'), r.positions, r.gpus, r.cpus, r.mems, r.complete_to,
               case when p_digest then hash_record_extended(r, p_releases.digest) end
          into p_releases.ats, p_releases.nodes, p_releases.gpus, p_releases.cpus, p_releases.mems, p_releases.complete_to, p_releases.digest
          from _plan_releases(p_now, p_node_ids, p_without, null, null, p_releases.first_ends) as r;
    end if;
    loop
        if p_windows is not null then
            -- From the first moment at which limits let it start to the first with free nodes, until both are the same.
            v_open := _limits_open(p_windows, v_open);
            exit when v_open is null;
        end if;
        v_start := _planned_start(
            p_job.alt_from, p_job.alt_to, p_group_from, p_group_to, p_alt_groups, p_blocks, p_job.blocks_most, p_job.lapse,
            p_node_groups, p_free, p_max_level, p_group_gpus, p_group_cpus, p_group_mems, p_group_domains, p_job.least, p_job.gpus,
            p_job.cpus, p_job.mem, p_job.exclusive, p_job.limit_us, p_allow, p_job.booking, p_releases.ats, p_releases.nodes,
            p_releases.gpus, p_releases.cpus, p_releases.mems, p_releases.complete_to, p_allocs, p_points, p_protected, p_not_before,
            case when p_windows is not null then nullif(v_open, 0) end);
        if v_start.at is not null or not v_start.needs_more then
            v_open := v_start.at;
            exit when v_open is null or p_windows is null or v_open = _limits_open(p_windows, v_open);
            continue;
        end if;
        v_read := true;
        p_releases.first_ends := v_more * p_releases.first_ends;
        select coalesce(r.ats, '{}'), r.positions, r.gpus, r.cpus, r.mems, r.complete_to
          into p_releases.ats, p_releases.nodes, p_releases.gpus, p_releases.cpus, p_releases.mems, p_releases.complete_to
          from _plan_releases(p_now, p_node_ids, p_without, _every(p_victims, 4, 1), _every(p_victims, 4, 4), p_releases.first_ends) as r;
    end loop;
    at := v_open;  fit := v_start.fit;  fitting := v_start.fitting;
    then_gpus := v_start.then_gpus;  then_cpus := v_start.then_cpus;  then_mems := v_start.then_mems;
    v_drop := case when p_windows is not null then cardinality(fit) - p_job.least - v_spares end;
    if v_drop > 0 then
        fit := fit[v_drop + 1:];  then_gpus := then_gpus[v_drop + 1:];  then_cpus := then_cpus[v_drop + 1:];
        then_mems := then_mems[v_drop + 1:];
    end if;
    if p_may_end then
        v_ended := _plan_preempt(
            p_now, p_job.job_id, p_qos_id, coalesce(p_without, '{}') || _every(p_victims, 4, 1), at, p_node_ids, p_job.alt_from,
            p_job.alt_to, p_group_from, p_group_to, p_alt_groups, p_blocks, p_job.blocks_most, p_node_groups, p_free, p_group_gpus,
            p_group_cpus, p_group_mems, p_group_domains, p_job.least, case when p_job.exclusive then -1 else p_job.gpus end,
            p_job.cpus, p_job.mem, p_job.limit_us, p_allow, p_job.booking, p_releases.ats, p_releases.nodes, p_releases.gpus,
            p_releases.cpus, p_releases.mems, p_allocs, p_points, p_protected);
        if v_ended.victims is not null and (p_windows is null or v_ended.at = _limits_open(p_windows, v_ended.at)) then
            at := v_ended.at;  fit := v_ended.fit;
            then_gpus := v_ended.then_gpus;  then_cpus := v_ended.then_cpus;  then_mems := v_ended.then_mems;
            victims := array(
                select w.value
                  from unnest(v_ended.victims, v_ended.costs, v_ended.ends) with ordinality as u (job_id, cost, until, ord)
                 cross join lateral unnest(array[u.job_id, p_job.job_id, u.cost, u.until]) with ordinality as w (value, ord)
                 order by u.ord, w.ord);
            v_read := true;  p_releases.first_ends := null;  p_victims := p_victims || victims;
            select coalesce(r.ats, '{}'), r.positions, r.gpus, r.cpus, r.mems, r.complete_to
              into p_releases.ats, p_releases.nodes, p_releases.gpus, p_releases.cpus, p_releases.mems, p_releases.complete_to
              from _plan_releases(p_now, p_node_ids, p_without, _every(p_victims, 4, 1), _every(p_victims, 4, 4), null) as r;
        end if;
    end if;
    if v_read then
        releases := p_releases;
    end if;
end;
$$;
