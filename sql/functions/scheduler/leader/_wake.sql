-- odc._wake: notify the daemons that something changed.
-- Every login of the server can fill its queue of notifications, which no right prevents, and then each transaction
-- with a notification fails. So nothing is sent while half of the queue is in use; the daemons' polls find the change.
create or replace function odc._wake()
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    if pg_notification_queue_usage() < 0.5 then
        notify odc;
    end if;
end;
$$;
