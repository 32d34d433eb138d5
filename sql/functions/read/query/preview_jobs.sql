-- odc.preview_jobs: where and when each of these jobs would start if it alone were submitted now, and which jobs it would
-- delay. Writes nothing: decide plans the queue with and without it, to the same depth as a pass. So the delays cover
-- every start that a pass promises.
-- Arguments  p_asks  a JSON array of jobs as odc.submit_jobs takes them, with uid, user and operator of the caller
-- Returns    a JSON array, per job {node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, time_limit_s,
--            start_at, promised, node_names, limit, reason, delays: [{job_id, from, to (null: its planned start is lost)}],
--            victims: [{job_id, user, qos, mode, ran_s, grace_s, lost_gpu_s or lost_cpu_s, text}] that it would preempt,
--            refused: null | {code, message, hint}}; start_at is p_now if it starts at once; null if it is not among the
--            first planned starts, or no end is in sight: reason is Slurm's, as the queue would show it. limit: Slurm's name
--            of a limit that it would wait for. promised: a pass would protect that start; beyond the plan depth none is
--            protected. The job's own conditions (hold, dependency, begin time) are ignored
create or replace function odc.preview_jobs(p_asks jsonb, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_base    record;               -- the plan without it
    v_ask     jsonb;
    v_terms   record;
    v_answers jsonb[] := '{}';
    v_code    text;
    v_message text;
    v_hint    text;
begin
    select d.* into v_base from decide(p_now, null, 1000000) as d;
    for v_ask in select * from jsonb_array_elements(p_asks) loop
        begin
            select r.* into v_terms from _resolve_preview(v_ask, p_now) as r;
        exception when others then
            get stacked diagnostics v_code = returned_sqlstate, v_message = message_text, v_hint = pg_exception_hint;
            if v_code not like 'OD%' then
                raise;
            end if;
            v_answers := v_answers || jsonb_build_object('refused', jsonb_build_object(
                'code', v_code, 'message', v_message, 'hint', v_hint));
            continue;
        end;
        v_answers := v_answers || _preview_job(
            v_terms.wanted, v_terms.uid, v_terms.account_id, v_terms.qos_id, (v_ask ->> 'nice')::integer, v_terms.time_limit_s,
            v_base.head_jobs, v_base.head_ats, v_base.start_jobs, p_now);
    end loop;
    return to_jsonb(v_answers)::text;
end;
$$;
