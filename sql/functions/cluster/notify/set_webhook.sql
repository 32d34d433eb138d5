-- odc.set_webhook: set the caller's webhook, to which notifications about their jobs and dev servers are sent.
-- Arguments  p_url    checked by the daemon
--            p_kinds  what to send
-- Returns    as show_webhook
-- Locks      webhook
-- Raises     OD010 BadRequest
create or replace function odc.set_webhook(p_actor jsonb, p_url text, p_kinds text[], p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_unknown text := (select min(k) from unnest(p_kinds) as k where k <> all (_notification_kinds()));
begin
    if v_unknown is not null or p_kinds = '{}' then
        raise exception using errcode = 'OD010',
            message = case when v_unknown is null then 'no kind of event was given'
                           else format('"%s" is not a kind of event', v_unknown) end,
            hint = format('Choose among %s.', array_to_string(_notification_kinds(), ', '));
    end if;
    insert into webhook (uid, user_name, url, kinds, set_at)
    values ((p_actor ->> 'uid')::integer, p_actor ->> 'user', p_url, p_kinds, p_now)
        on conflict (uid) do update
       set user_name = excluded.user_name, url = excluded.url, kinds = excluded.kinds, set_at = excluded.set_at;
    -- Notifications that wait are sent to the new address now.
    update outbox as o set next_at = p_now
     where o.uid = (p_actor ->> 'uid')::integer and o.channel = 'webhook' and o.next_at > p_now and o.trouble is not null;
    insert into event (at, kind, actor, detail)
    values (p_now, 'webhook_set', p_actor ->> 'user', jsonb_build_object('kinds', p_kinds));
    perform _wake();
    return show_webhook((p_actor ->> 'uid')::integer);
end;
$$;
