-- odc.configure_notifications: store the settings of the leader of this term.
-- Arguments  p_mail      whether it can send mail; if not, mail that waits is kept, and none is added
--            p_per_hour  notifications of one user
-- Locks      term for share; notify_state
-- Raises     OD020 LeadershipLost
create or replace function odc.configure_notifications(p_term bigint, p_mail boolean, p_per_hour integer, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    update notify_state set mail = p_mail, per_hour = p_per_hour, checked_at = coalesce(checked_at, p_now);
end;
$$;
