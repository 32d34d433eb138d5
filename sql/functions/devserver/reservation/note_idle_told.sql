-- odc.note_idle_told: record that the user of a reservation received the notice of note_look.
-- Arguments  p_idle_s, p_release_at  as note_look returned them
-- Locks      term for share; box_look
-- Raises     OD020 LeadershipLost
create or replace function odc.note_idle_told(
    p_term bigint, p_job_id bigint, p_attempt integer, p_idle_s integer, p_release_at timestamptz, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    perform _set_now(p_now);
    update box_look as l set told_at = case when p_idle_s is not null then p_now end
     where l.job_id = p_job_id and l.attempt = p_attempt;
    if found and p_idle_s is not null then
        insert into event (at, kind, actor, job_id, detail)
        values (p_now, 'idle_warned', 'odcd', p_job_id,
                jsonb_strip_nulls(jsonb_build_object('idle_s', p_idle_s, 'release_at', _iso(p_release_at))));
        perform _wake();
    end if;
end;
$$;
