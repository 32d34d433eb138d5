-- odc.note_warned: record that a notice of take_warnings was delivered, or cannot be.
-- Arguments  p_minutes     as returned; null: the notice that the end was moved to a later time
--            p_trouble     why it was not delivered; null: it was
-- Locks      term for share, turn; reservation, reservation_warning
-- Raises     OD020 LeadershipLost
create or replace function odc.note_warned(
    p_term bigint, p_job_id bigint, p_expires_at timestamptz, p_minutes integer, p_trouble text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    update reservation set stale_files = false where job_id = p_job_id and stale_files and expires_at = p_expires_at;
    if p_minutes is not null then
        update reservation_warning set sent_at = p_now
         where job_id = p_job_id and expires_at = p_expires_at and minutes = p_minutes and sent_at is null;
        if found then
            insert into event (at, kind, actor, job_id, detail)
            values (p_now, 'warned', 'odcd', p_job_id,
                    jsonb_strip_nulls(jsonb_build_object('minutes', p_minutes, 'expires_at', _iso(p_expires_at), 'trouble', p_trouble)));
            perform _notify_dev_server('expiry', p_job_id,
                                       jsonb_build_object('minutes', p_minutes, 'expires_at', _iso(p_expires_at)), p_now);
            perform _wake();
        end if;
    end if;
end;
$$;
