-- odc._protect_job: what becomes of a job that cannot start now. It may become protected, end other jobs, or neither.
-- Arguments  p_job  the job;  p_lacking, p_tight, p_wait  its limits, see _limits_now
--            p_full, p_behind  its shape's claims are used up; the first job that claimed such a group
--            p_preempts, p_tries  its class may end others; how many jobs of this plan have tried
--            p_nowhere  a time limit with which no start is in sight for its shape
--            p_kept_shape_id  its shape;  p_preempting  jobs of some QOS may end others
--            p_components  of a heterogeneous job, what _load_pass returned; else null;  p_asked  see _find_components_start
--            p_qos_id … p_victims  as for _find_start;  p_lefts … p_limits_s  as for _limit_windows
-- Returns    at … releases: as _find_start;  at null: it is not pinned to nodes
--            entry: its values in p_protected;  reported: its values for _report_plan
--            claims: it claims groups, not a limit;  reserved_from: from this moment on, limits are reserved for it
--            lacks: the limit that closes its class; null: none;  refusal: Slurm's reason for its shape
--            preempts, tries, nowhere, asked: the new values of the arguments
--            points, protected, allocs: of a heterogeneous job, as _find_components_start; it has no entry
create or replace function odc._protect_job(
    p_now timestamptz, p_job odc.candidate, p_lacking integer[], p_tight integer[], p_wait boolean, p_full boolean, p_behind bigint,
    p_preempts boolean, p_tries integer, p_nowhere bigint, p_kept_shape_id integer, p_preempting boolean,
    p_qos_id integer, p_not_before bigint, p_without bigint[], p_digest boolean, p_node_ids integer[], p_group_from integer[],
    p_group_to integer[], p_alt_groups integer[], p_blocks integer[], p_node_groups integer[], p_free bigint[],
    p_max_level integer, p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[], p_group_domains integer[],
    p_allow boolean[], p_releases odc.release_lists,
    p_allocs bigint[], p_points bigint[], p_protected bigint[], p_victims bigint[],
    p_lefts bigint[], p_spans bigint[], p_buckets integer[], p_needs bigint[], p_mores bigint[], p_gives bigint[], p_used integer[],
    p_use_from integer[], p_use_to integer[], p_limits_s integer[], p_components odc.shape_lists,
    p_asked integer,
    out at bigint, out fit integer[], out then_gpus integer[], out then_cpus integer[], out then_mems integer[],
    out victims bigint[], out releases odc.release_lists, out entry bigint[], out reported bigint[], out claims boolean, out reserved_from bigint, out lacks integer, out refusal text,
    out preempts boolean, out tries integer, out nowhere bigint, out asked integer,
    out points bigint[], out protected bigint[], out allocs bigint[])
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_max_tries constant integer := 32;
    v_lacks boolean := p_lacking <> '{}';
    v_may_end constant boolean := p_preempts and p_tries < v_max_tries and not v_lacks;
    v_protect boolean := not p_full and p_job.depth > 0 and not (v_lacks and not p_wait);
    v_windows bigint[];  v_start record;  v_first bigint;  v_apart boolean := false;
begin
    preempts := p_preempts;  tries := p_tries;  nowhere := p_nowhere;  asked := p_asked;
    if p_tight <> '{}' and (v_may_end or v_protect) then
        v_windows := _limit_windows(p_tight, p_lefts, p_spans, p_buckets, p_needs, p_mores, p_job.use_from, p_job.use_to,
                                    p_job.limit_us, p_gives, p_used, p_use_from, p_use_to, p_limits_s);
    end if;
    v_protect := v_protect and (v_may_end or (p_job.limit_us < p_nowhere and v_windows is distinct from '{}'));
    if v_protect and p_components.component_to is not null then
        v_start := _find_components_start(
            p_now, p_job, p_components, v_windows, p_without, p_digest, p_node_ids, p_group_from, p_group_to, p_alt_groups, p_blocks,
            p_node_groups, p_free, p_max_level, p_group_gpus, p_group_cpus, p_group_mems, p_group_domains, p_releases, p_allocs,
            p_points, p_protected, p_victims, p_asked);
        asked := v_start.asked;  v_apart := v_start.apart;
        v_lacks := v_lacks or (v_start.at is null and v_windows is not null and not v_apart);
        points := v_start.points;  protected := v_start.protected;  allocs := v_start.allocs;
    elsif v_may_end or v_protect then
        v_start := _find_start(
            p_now, p_job, v_may_end, p_preempts, p_qos_id, p_not_before, v_windows, p_without, p_digest, p_node_ids, p_group_from,
            p_group_to, p_alt_groups, p_blocks, p_node_groups, p_free, p_max_level, p_group_gpus, p_group_cpus, p_group_mems,
            p_group_domains, p_allow, p_releases, p_allocs, p_points, p_protected, p_victims);
    end if;
    if v_may_end or v_protect then
        at := v_start.at;  fit := v_start.fit;  victims := v_start.victims;
        then_gpus := v_start.then_gpus;  then_cpus := v_start.then_cpus;  then_mems := v_start.then_mems;
        releases := v_start.releases;
        v_lacks := v_lacks or (at is null and fit is not null);
        if v_may_end then
            tries := p_tries + 1;  preempts := victims is not null;  v_protect := v_protect or preempts;
        end if;
    end if;
    if v_lacks and at is null then
        lacks := coalesce(p_lacking[1], p_tight[1]);
        return;
    end if;
    refusal := case when v_lacks then null
                    when not v_protect and p_full and p_behind is not null then 'Priority'
                    when v_protect and at is null and p_job.blocks_most is null and not v_apart then 'ReqNodeNotAvail' else 'Resources' end;
    if not v_protect then
        at := null;
        return;
    end if;
    reported := array[p_job.job_id, case when at is null then 0 else cardinality(p_protected) / 10 + 1 end, v_start.fitting,
                      p_kept_shape_id, coalesce(p_lacking[1], 0)];
    if at is null then
        -- Its nodes are down, or allocated without an end in sight, or its components do not fit beside each other: it blocks no other job.
        nowhere := p_job.limit_us;
        return;
    end if;
    v_first := cardinality(p_points) + 1;
    entry := case when points is null then array[case when p_job.exclusive then -1 else p_job.gpus end, p_job.cpus, p_job.mem, v_first,
                  v_first + 9 * cardinality(fit), v_first, at, at + p_job.limit_us, cardinality(p_allocs) + 1, p_job.least] end;
    -- Victims may end early, so the limits of a preemptor are reserved at once.
    reserved_from := case when victims is null and not (p_preempting and p_job.claims_nodes) then at else 0 end;
    -- A job that lacks a limit claims this and no nodes: many users wait for their own limits, and the first job that lacks
    -- nodes must be protected beside them.
    claims := victims is null and p_lacking = '{}' and not p_job.claims_nodes;
end;
$$;
