-- odc.show_webhook: a user's webhook, and the last notifications about their jobs. The address is shown up to its host: what
-- follows is often a secret.
-- Returns    JSON {url, events, set_at, recent: [{id, channel, kind, job_id, at, sent_at, failed_at, tries, trouble}]}; without a
--            webhook, url and set_at are null and events is empty
create or replace function odc.show_webhook(p_uid integer)
returns text
language sql stable as $$
    select json_build_object(
               'url', substring(w.url from '^https?://[^/?#]+') || '/…', 'events', coalesce(to_json(w.kinds), '[]'),
               'set_at', odc._iso(w.set_at),
               'recent', coalesce((
                   select json_agg(json_build_object(
                              'id', o.id, 'channel', o.channel, 'kind', o.kind, 'job_id', o.job_id, 'at', odc._iso(o.created_at),
                              'sent_at', odc._iso(o.sent_at), 'failed_at', odc._iso(o.failed_at), 'tries', o.tries,
                              'trouble', o.trouble) order by o.id desc)
                     from (select * from odc.outbox as x where x.uid = p_uid order by x.id desc limit 10) as o), '[]'))::text
      from (values (p_uid)) as u (uid)
      left join odc.webhook as w on w.uid = u.uid
$$;
