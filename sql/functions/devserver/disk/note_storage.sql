-- odc.note_storage: record the result of work on a user's part of the shared file system.
-- Arguments  p_uid     the user
--            p_answer  {"cloud_id"} of create, {"done": true} of publish, {"busy": why}, {"refused": why}
-- Locks      term for share; shared_storage
-- Raises     OD020 LeadershipLost
create or replace function odc.note_storage(p_term bigint, p_uid integer, p_verb text, p_answer jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    perform _set_now(p_now);
    if p_answer ? 'busy' or p_answer ? 'refused' then
        update shared_storage set tries = tries + 1, trouble = coalesce(p_answer ->> 'refused', p_answer ->> 'busy'), due_at = p_now + _disk_delay(tries)
         where uid = p_uid and due_at is not null;
    elsif p_verb = 'create' then
        update shared_storage set cloud_id = coalesce(cloud_id, p_answer ->> 'cloud_id'), due_at = p_now, tries = 0, trouble = null where uid = p_uid;
    else
        update shared_storage set published_at = coalesce(published_at, p_now), due_at = null, tries = 0, trouble = null where uid = p_uid;
    end if;
end;
$$;
