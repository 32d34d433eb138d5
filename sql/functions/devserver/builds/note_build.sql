-- odc.note_build: record the progress of an attempt to build. An attempt that is not the current one is ignored.
-- Arguments  p_made  its Job exists
--            p_step  the current step; null: not reported yet
--            p_log   the end of its output
-- Locks      term for share; build
-- Raises     OD020 LeadershipLost
create or replace function odc.note_build(p_term bigint, p_build_id bigint, p_attempt integer, p_made boolean, p_step text, p_log text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    update build as b
       set made_at = case when p_made then coalesce(b.made_at, p_now) else b.made_at end, step = coalesce(p_step, b.step),
           log = coalesce(p_log, b.log)
     where b.id = p_build_id and b.attempt = p_attempt and b.state = 'building';
end;
$$;
