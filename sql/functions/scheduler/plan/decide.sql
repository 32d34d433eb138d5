-- odc.decide: which pending jobs start now and where, and when the others will start.
-- Reads and returns; writes nothing. A plan is made by _decide_once. First come, first served with several protected jobs
-- promises planned starts: if a plan would delay a job without cause, it is made again with that job kept where it was
-- planned. See docs/decisions/0009-conservative-by-promised-starts.md.
--
-- Arguments  p_now          the pass's time
--            p_what_if      hypothetical jobs, queued at p_now: array of {partition_ids, node_count, node_count_max,
--                           gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, exclusive, constraint_expr,
--                           node_list, exclude_nodes, switches, switches_wait_s, booking_id, licences, time_limit_s,
--                           uid, account_id, qos_id, nice}; their job ids are -1, -2, …
--            p_start_limit  maximum number of starts; `more` says whether it cut the plan short
--            p_chunk        how many jobs of a class are read at once; does not affect the plan
--            p_depth        overrides the policies' plan_depth
--            p_without      plan as if these jobs did not exist, pending or running (limits still count them)
--            p_digest       whether to return read_digest: digests of everything read, for a replay to compare: 8 bytes
--                           each for classes, nodes, shapes, limits, queue, releases
--            p_only         plan as if no other jobs were pending or claimed nodes; running jobs stay. The cost depends
--                           only on these jobs
-- Returns    one row. Starts: job (an array's row once per task), partition, number of nodes, time limit.
--            Their allocations, one after the other: node id, GPU mask, GPUs, CPUs, MiB.
--            Protected jobs: id, planned start (null: not in sight), node ids, nodes that fit now, shape.
--            Refusals: shape, Slurm's reason, the protected job they wait behind. Classes skipped for a limit, and
--            Slurm's name of it. Victims: the jobs to end, for which job, at what cost (see _plan_victims). looked: jobs
--            considered; classes: how many there are.
create or replace function odc.decide(
    p_now timestamptz, p_what_if jsonb default null, p_start_limit integer default 2000,
    p_chunk integer default null, p_depth integer default null, p_without bigint[] default null,
    p_digest boolean default false, p_only bigint[] default null,
    out looked integer, out classes integer, out more boolean,
    out start_jobs bigint[], out start_partitions integer[], out start_nodes integer[],
    out start_limits_s integer[],
    out alloc_nodes integer[], out alloc_masks bigint[], out alloc_gpus integer[], out alloc_cpus integer[],
    out alloc_mems integer[],
    out head_jobs bigint[], out head_ats timestamptz[], out head_nodes text[], out head_fittings integer[],
    out head_shapes integer[],
    out refused_shapes integer[], out refused_reasons text[], out refused_heads bigint[],
    out limited_shapes integer[], out limited_limits_s integer[], out limited_uids integer[],
    out limited_accounts integer[], out limited_qos integer[], out limited_reasons text[],
    out victim_jobs bigint[], out victim_for bigint[], out victim_costs bigint[], out read_digest bytea)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_tries constant integer := 8;  v_patience constant integer := 3;
    v_kept  bigint[];           -- these keep their planned starts
    v_lost  bigint[] := '{}';   -- these cannot keep them
    v_slips bigint[];
begin
    for v_try in 1..v_tries loop
        select * into looked, classes, more, start_jobs, start_partitions, start_nodes, start_limits_s,
           alloc_nodes, alloc_masks, alloc_gpus, alloc_cpus, alloc_mems, head_jobs, head_ats,
           head_nodes, head_fittings, head_shapes, refused_shapes, refused_reasons, refused_heads,
           limited_shapes, limited_limits_s, limited_uids, limited_accounts, limited_qos,
           limited_reasons, victim_jobs, victim_for, victim_costs, read_digest
          from _decide_once(p_now, p_what_if, p_start_limit, p_chunk, p_depth, p_without, p_digest, v_kept, p_only);
        exit when more or v_try = v_tries;
        v_slips := _find_slips(p_now, head_jobs, head_ats, start_jobs, p_without, p_only);
        exit when v_slips is null or v_slips <@ v_lost;
        -- A job that slips although it was kept lost its place to a change in the cluster.
        v_lost := v_lost || array(select u from unnest(v_slips) as u where u = any (v_kept));
        if v_try >= v_patience then
            -- One job at a time takes too long: keep all of them.
            v_slips := v_slips || _find_slips(p_now, null, null, null, p_without, p_only);
        end if;
        v_kept := array(select distinct u from unnest(v_kept || v_slips) as u where u <> all (v_lost) order by u);
    end loop;
end;
$$;
