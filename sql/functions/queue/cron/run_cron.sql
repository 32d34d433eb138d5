-- odc.run_cron: submit the job of one due occurrence and advance the entry to its next time, both or neither. A daemon
-- that dies between loses and repeats nothing. While the last job of the entry is pending or running, the occurrence is
-- skipped. A refusal is recorded, and the entry goes on; only if its user may not use the account, QOS or partition any
-- longer, it is disabled.
-- Arguments  p_due_at   the entry's next_at, as due_crons returned it
--            p_request  one request of submit_jobs, with one job; null: refused already, or not needed: to be skipped
--            p_digests, p_texts  of submit_jobs
--            p_code, p_message   why it was refused before
-- Returns    {result: submitted | skipped | refused, job_id, why, disabled}; null: another daemon has done it, or the entry
--            is gone or disabled
-- Locks      term for key share; with a dependency, the turn; cron_entry; as submit_jobs
-- Raises     OD020 LeadershipLost
create or replace function odc.run_cron(
    p_term bigint, p_id bigint, p_due_at timestamptz, p_request jsonb, p_digests text[], p_texts text[], p_code text,
    p_message text, p_now timestamptz)
returns jsonb
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_entry    cron_entry;
    v_live     text;
    v_answer   record;
    v_result   text := 'refused';
    v_why      text := p_message;
    v_code     text := p_code;
    v_job_id   bigint;
    v_disabled boolean;
begin
    perform _hold_term(p_term);
    if jsonb_path_exists(p_request, '$.jobs[*].dependency ? (@ != null)') then
        perform _take_turn(p_now);
    end if;
    select * into v_entry from cron_entry where id = p_id for update;
    if not found or v_entry.next_at is distinct from p_due_at then
        return null;
    end if;
    v_live := _live_cron_job(v_entry.last_job_id);
    if v_live is not null then
        v_result := 'skipped';
        v_why := format('job %s is still %s', v_entry.last_job_id, v_live);
        v_code := null;
    elsif p_code is null and p_request is null then
        return null;      -- its last job has ended since: the next round submits
    elsif p_code is null then
        select a.job_id, a.code, a.message into strict v_answer
          from submit_jobs(jsonb_build_array(p_request), p_digests, p_texts, p_now) as a;
        v_job_id := v_answer.job_id;  v_code := v_answer.code;  v_why := v_answer.message;
        v_result := case when v_job_id is not null then 'submitted' else 'refused' end;
    end if;

    -- UnknownAccount, NotAllowed, UnknownUser
    v_disabled := coalesce(v_code in ('OD002', 'OD026', 'OD027'), false);
    update cron_entry as c
       set last_at = p_due_at, last_result = v_result, last_why = v_why, last_job_id = coalesce(v_job_id, c.last_job_id),
           skipped = c.skipped + case when v_result = 'skipped' then 1 else 0 end,
           next_at = case when not v_disabled
                          then _next_cron(c.minutes, c.hours, c.days, c.months, c.weekdays, c.any_day, c.every_hour, c.zone,
                                          greatest(p_now, p_due_at)) end,
           disabled_at = case when v_disabled then p_now end, disabled_by = case when v_disabled then 'odcd' end,
           disabled_why = case when v_disabled then v_why end
     where c.id = p_id;
    if v_result = 'refused' then
        insert into event (at, kind, actor, detail)
        select p_now, case when v_disabled then 'cron_disabled' else 'cron_refused' end, t.user_name,
               jsonb_build_object('user', t.user_name, 'line', v_entry.line, 'why', v_why)
          from cron_table as t where t.uid = v_entry.uid;
    end if;
    return jsonb_build_object('result', v_result, 'job_id', v_job_id, 'why', v_why, 'disabled', v_disabled);
end;
$$;
