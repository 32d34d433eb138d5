-- odc.note_sent: record that notifications were sent. It needs no term: what was sent must not be sent again, whoever leads.
-- Arguments  p_ids  of outbox
-- Locks      the outbox rows
create or replace function odc.note_sent(p_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    update outbox as o set sent_at = p_now, next_at = null, failed_at = null, trouble = null
     where o.id = any (p_ids) and o.sent_at is null;
end;
$$;
