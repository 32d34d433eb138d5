-- odc.explain_job: why one job has not started, and when it should; for a job that is being preempted, by which job.
-- For a job without conditions of its own that hold it back, it names every obstacle: without them, the next pass
-- starts it.
-- Arguments  p_now  an earlier planned start is shown as p_now
--            p_actor  as for _booking_label
-- Returns    JSON {job_id, state, reason, why, planned_start_at, eta, eta_scored, kept, starts_now}. eta_scored: how many past
--            predictions the interval of eta is based on. kept: free GPUs that are kept for planned jobs. starts_now: the
--            largest time limit with which the job would start now, or null
-- Raises     OD006 UnknownJob
create or replace function odc.explain_job(p_job_id bigint, p_now timestamptz, p_actor jsonb default null)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_waits  constant boolean := exists (select from pending as p where p.job_id = p_job_id and p.ready);
    v_going  constant json := (
        select json_build_array(json_strip_nulls(json_build_object(
                   'cause', 'preempted', 'job_id', r.preempted_by, 'until', _iso(r.kill_at), 'text',
                   format('%s; it has until %s to end', _preemption_text(r.preemption), _iso(r.kill_at)))))
          from running as r where r.job_id = p_job_id and r.intent = 'preempt');
    v_fields constant text[] := array['state', 'reason', 'planned_start_at', 'eta'] || case when not v_waits and v_going is null then array['why'] end;
    v_answer text := _render_jobs(array[p_job_id], 'oldest', v_fields, p_now);
    v_why    json;
    v_kept   json;
    v_now    json;
begin
    if v_answer = '[]' then
        perform _refuse_unknown(p_job_id, null);
    end if;
    v_answer := substr(v_answer, 3, length(v_answer) - 4);
    if v_waits then
        select coalesce(json_agg(json_strip_nulls(json_build_object(
                   'cause', w.cause, 'text', w.text, 'job_id', w.job_id, 'limit', w."limit", 'booking_id', w.booking_id,
                   'node', w.node, 'gpus', w.gpus, 'until', _iso(w.until))) order by w.ord), '[]')
          into v_why
          from (select * from _why_waiting(p_job_id, p_now, p_actor) with ordinality
                 union all
                select 'node', _why_new_node(p_job_id), null, null, null, null, null, null, 0
                 where _why_new_node(p_job_id) is not null
                 union all
                -- It would still run without the preemption.
                select 'preempted', _preemption_text(t.preemption), (t.preemption ->> 'by')::bigint, null, null, null, null, null, 1000000
                  from pending as p
                  join attempt as t on t.job_id = p.job_id and t.attempt = p.attempt - 1
                 where p.job_id = p_job_id and t.preemption is not null)
               as w (cause, text, job_id, "limit", booking_id, node, gpus, until, ord);
        v_answer := v_answer || ',"why":' || v_why;
        select json_agg(json_build_object('text', k.text, 'job_id', k.job_id, 'nodes', k.nodes, 'gpus', k.gpus, 'until', _iso(k.until)))
          into v_kept from _why_reserved(p_job_id, p_now) as k;
        select json_build_object('time_limit_s', s.time_limit_s, 'node_names', s.node_names, 'text',
                   format('a time limit of %s or less would start now on %s', _duration(s.time_limit_s), _fold_names(s.node_names)))
          into v_now from _why_shorter(p_job_id, p_now) as s;
    end if;
    if v_going is not null then
        v_answer := v_answer || ',"why":' || v_going;
    end if;
    return format('{"job_id":%s,%s,"eta_scored":%s,"kept":%s,"starts_now":%s}', p_job_id, v_answer,
                  coalesce((select cardinality(c.sorted) from eta_class as c where c.class = 0), 0),
                  coalesce(v_kept, '[]'), coalesce(v_now, 'null'));
end;
$$;
