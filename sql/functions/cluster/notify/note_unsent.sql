-- odc.note_unsent: record that notifications could not be sent.
-- Arguments  p_ids       of outbox
--            p_retry_at  when to try again; null: never, which is an event
--            p_trouble   why; null: they were not tried, and this try does not count
-- Locks      term for share; the outbox rows; for a webhook also the later ones of its user, which wait as long
-- Raises     OD020 LeadershipLost
create or replace function odc.note_unsent(
    p_term bigint, p_ids bigint[], p_retry_at timestamptz, p_trouble text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    if p_retry_at is not null then
        update outbox as o
           set next_at = p_retry_at, trouble = coalesce(p_trouble, o.trouble),
               tries = case when p_trouble is null then greatest(0, o.tries - 1) else o.tries end
         where o.id = any (p_ids) and o.next_at is not null;
        return;
    end if;
    with gone as (
        update outbox as o set next_at = null, failed_at = p_now, trouble = p_trouble
         where o.id = any (p_ids) and o.next_at is not null
        returning o.id, o.user_name, o.job_id, o.channel, o.kind
    )
    insert into event (at, kind, actor, job_id, detail)
    select p_now, 'notification_failed', 'odcd', g.job_id,
           jsonb_build_object('user', g.user_name, 'channel', g.channel, 'kind', g.kind, 'why', p_trouble)
      from gone as g order by g.id;
end;
$$;
