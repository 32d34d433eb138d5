-- odc._notify_dev_server: put a notice about a dev server into the outbox, if its user's webhook asks for it.
-- Arguments  p_kind  expiry or drain
--            p_more  facts beside those of the job
-- Locks      as _fill_outbox
create or replace function odc._notify_dev_server(p_kind text, p_job_id bigint, p_more jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    if not exists (select from webhook) then
        return;
    end if;
    perform _fill_outbox(jsonb_agg(jsonb_build_object(
                'uid', j.uid, 'user', j.user_name, 'channel', 'webhook', 'kind', p_kind, 'job_id', j.id,
                'facts', _job_notification(j.id, p_now) || p_more)), p_now)
       from job as j
       join webhook as h on h.uid = j.uid and p_kind = any (h.kinds)
      where j.id = p_job_id
     having count(*) > 0;
end;
$$;
