-- odc.show_key: the key of a request, and how many valid keys its user has; sessions of the page are counted separately.
-- Arguments  p_digest  null: the request had no key
-- Returns    JSON {key: {prefix, made_at, expires_at, last_used_at} or null, sessions, page_sessions}
create or replace function odc.show_key(p_uid integer, p_digest text, p_now timestamptz)
returns text
language sql stable as $$
    select json_build_object(
        'key', (select json_build_object('prefix', k.prefix, 'made_at', odc._iso(k.made_at),
                                         'expires_at', odc._iso(k.expires_at), 'last_used_at', odc._iso(k.last_used_at))
                  from odc.api_key as k where k.digest = p_digest),
        'sessions', (select count(*) from odc.api_key as k
                      where k.uid = p_uid and k.kind = 'key' and k.active and k.expires_at > p_now),
        'page_sessions', (select count(*) from odc.api_key as k
                           where k.uid = p_uid and k.kind = 'session' and k.active and k.expires_at > p_now))::text
$$;
