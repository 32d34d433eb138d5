-- odc.record_facts: record what an executor observed of members. Facts that are already known, or that belong to ended
-- attempts, change nothing. When one member of a gang fails, the others are marked to be ended.
-- Arguments  parallel arrays: job, attempt, rank, kind (started, exited, lost, start_failed, doomed), time, exit
--            code, signal, cause (timeout, oom, launch, unscheduled, unknown, deleted), detail, and whether the node may be
--            at fault (null: none is); nodes to drain (null: none), as JSON text: by rank, the reason; and what the
--            members used (null: unknown), as the text of an array: see the column allocation.used
-- Returns    ids of the jobs whose attempt ended by these facts
-- Locks      term for share; the turn; running by job, allocation; node by name, if some are to be drained
-- Raises     OD020 LeadershipLost
create or replace function odc.record_facts(
    p_term bigint, p_job_ids bigint[], p_attempts integer[], p_ranks integer[], p_kinds text[],
    p_ats timestamptz[], p_exit_codes integer[], p_signals integer[], p_causes text[], p_details text[],
    p_now timestamptz, p_suspects boolean[] default null, p_drains text[] default null,
    p_used text[] default null)
returns table (job_id bigint)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_over bigint[];
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    perform from running as r where r.job_id = any (p_job_ids) order by r.job_id for update;

    if 'doomed' = any (p_kinds) then
        perform _note_doomed(p_job_ids, p_attempts, p_kinds, p_ats, p_details);
    end if;
    if p_drains is not null then
        perform _drain_nodes(p_job_ids, p_attempts, p_ranks, p_drains, p_now);
    end if;
    perform _record_members(p_job_ids, p_attempts, p_ranks, p_kinds, p_ats, p_exit_codes, p_signals, p_causes, p_details,
                            p_suspects, p_used, p_now);

    if exists (select from reservation as v where v.job_id = any (p_job_ids) and v.launched_at is null) then
        perform _activate_reservations(p_job_ids, p_now);
    end if;
    select array_agg(r.job_id order by r.job_id) into v_over
      from running as r where r.job_id = any (p_job_ids) and r.live_members = 0;
    if v_over is not null then
        perform _end_attempts(v_over, p_now);
    end if;
    return query select unnest(v_over);
end;
$$;
