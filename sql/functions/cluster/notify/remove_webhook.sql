-- odc.remove_webhook: remove the caller's webhook. Notifications that wait for it are not sent.
-- Returns    as show_webhook
-- Locks      webhook, outbox rows
-- Raises     OD010 BadRequest: there is none
create or replace function odc.remove_webhook(p_actor jsonb, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    delete from webhook as w where w.uid = (p_actor ->> 'uid')::integer;
    if not found then
        raise exception using errcode = 'OD010',
            message = 'you have no webhook', hint = 'Set one with `odcctl notify set ADDRESS`.';
    end if;
    update outbox as o set next_at = null, failed_at = p_now, trouble = 'the webhook was removed'
     where o.uid = (p_actor ->> 'uid')::integer and o.channel = 'webhook' and o.next_at is not null;
    insert into event (at, kind, actor) values (p_now, 'webhook_removed', p_actor ->> 'user');
    return show_webhook((p_actor ->> 'uid')::integer);
end;
$$;
