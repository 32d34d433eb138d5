-- odc.decide: which pending jobs start now and where, and when the others will start. Reads and returns; writes nothing.
-- A plan is made by _decide_once. First come, first served with several protected jobs promises planned starts: if a plan
-- would delay a job without cause, it is made again with that job kept where it was planned. See
-- docs/decisions/0009-conservative-by-promised-starts.md.
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
--            p_digest       whether to return read_digest
--            p_only         plan as if no other jobs were pending or claimed nodes; running jobs stay. The cost depends
--                           only on these jobs
create or replace function odc.decide(
    p_now timestamptz, p_what_if jsonb default null, p_start_limit integer default 2000,
    p_chunk integer default null, p_depth integer default null, p_without bigint[] default null,
    p_digest boolean default false, p_only bigint[] default null)
returns odc.decision
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_tries constant integer := 8;  v_patience constant integer := 3;
    v_plan  decision;
    v_promised  bigint[];           -- these keep their planned starts
    v_lost  bigint[] := '{}';   -- these cannot keep them
    v_slips bigint[];
begin
    for v_try in 1..v_tries loop
        v_plan := _decide_once(p_now, p_what_if, p_start_limit, p_chunk, p_depth, p_without, p_digest, v_promised, p_only);
        exit when v_plan.more or v_try = v_tries;
        v_slips := _find_slips(p_now, v_plan.head_jobs, v_plan.head_ats, v_plan.start_jobs, p_without, p_only);
        exit when v_slips is null or v_slips <@ v_lost;
        -- A job that slips although it was kept lost its place to a change in the cluster.
        v_lost := v_lost || array(select u from unnest(v_slips) as u where u = any (v_promised));
        if v_try >= v_patience then
            -- One job at a time takes too long: keep all of them.
            v_slips := v_slips || _find_slips(p_now, null, null, null, p_without, p_only);
        end if;
        v_promised := array(select distinct u from unnest(v_promised || v_slips) as u where u <> all (v_lost) order by u);
    end loop;
    return v_plan;
end;
$$;
