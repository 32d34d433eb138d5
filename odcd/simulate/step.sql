-- One moment of a replay in one round trip: ended jobs, submitted jobs, then a pass, with the functions
-- that the daemon calls. Created in the replay's own database, next to the schema odc.
create schema simulate;

-- Arguments  p_end_jobs, p_end_nodes  attempts whose members all exited now, and their number of members
--            p_requests, p_digests, p_texts  the arguments of odc.submit_jobs; null: nothing is submitted
--            p_pass  false: no job waits, so a pass has nothing to do
create function simulate.step(
    p_now timestamptz, p_end_jobs bigint[], p_end_nodes integer[],
    p_requests jsonb, p_digests text[], p_texts text[], p_pass boolean,
    out submitted bigint[], out refusal text, out started bigint[], out pass_ms real[])
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_pass record;
begin
    if p_end_jobs is not null then
        -- The start of the members is reported together with their ends, once per job.
        perform record_facts(
                    0, array_agg(f.job_id), array_agg(1), array_agg(f.rank), array_agg(f.kind), array_agg(p_now),
                    array_agg(0), array_agg(null::integer), array_agg(null::text), array_agg(null::text), p_now)
           from (select e.job_id, m.rank - 1 as rank, 'exited' as kind
                   from unnest(p_end_jobs, p_end_nodes) as e (job_id, nodes)
                  cross join lateral generate_series(1, e.nodes) as m (rank)
                  union all
                 select e.job_id, 0, 'started' from unnest(p_end_jobs) as e (job_id)) as f;
    end if;
    if p_requests is not null then
        select array_agg(s.job_id order by s.request, s.ord),
               min(concat_ws(' ', s.code, s.message, s.hint)) filter (where s.job_id is null)
          into submitted, refusal
          from submit_jobs(p_requests, p_digests, p_texts, p_now) as s;
    end if;
    started := '{}';
    pass_ms := '{}';
    while p_pass loop
        select * into v_pass from plan_pass(0, p_now);
        started := started || v_pass.started;
        pass_ms := pass_ms || v_pass.took_ms;
        p_pass := v_pass.more;
    end loop;
end;
$$;
