-- odc.note_node_notice: record that a notice of take_node_notices was delivered, or cannot be.
-- Arguments  p_text     as returned
--            p_trouble  why it was not delivered; null: it was
-- Locks      term for share, turn; reservation
-- Raises     OD020 LeadershipLost
create or replace function odc.note_node_notice(
    p_term bigint, p_job_id bigint, p_text text, p_trouble text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    update reservation set node_notice = p_text where job_id = p_job_id and node_notice is distinct from p_text;
    if found and p_text is not null then
        insert into event (at, kind, actor, job_id, detail)
        values (p_now, 'node_warned', 'odcd', p_job_id,
                jsonb_strip_nulls(jsonb_build_object('text', p_text, 'trouble', p_trouble)));
        perform _notify_dev_server('drain', p_job_id, jsonb_build_object('text', p_text), p_now);
        perform _wake();
    end if;
end;
$$;
