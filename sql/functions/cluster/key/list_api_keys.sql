-- odc.list_api_keys: the valid API keys, without the keys themselves, and how many page sessions were made from each.
-- Arguments  p_user  only this user's; null: of all users
-- Returns    JSON [{user, uid, prefix, made_at, expires_at, until_at, last_used_at, page_sessions}], the first to
--            expire first. until_at: rotation cannot extend it beyond this. prefix: null for keys of old daemons
create or replace function odc.list_api_keys(p_user text, p_now timestamptz)
returns text
language sql stable as $$
    select coalesce(json_agg(json_build_object(
               'user', k.user_name, 'uid', k.uid, 'prefix', k.prefix, 'made_at', odc._iso(k.made_at),
               'expires_at', odc._iso(k.expires_at), 'until_at', odc._iso(coalesce(k.until_at, k.expires_at)),
               'last_used_at', odc._iso(k.last_used_at),
               'page_sessions', (select count(*) from odc.api_key as s
                                  where s.origin = coalesce(k.origin, k.digest) and s.kind = 'session' and s.active
                                    and s.expires_at > p_now))
               order by k.expires_at, k.digest), '[]')::text
      from odc.api_key as k
     where k.kind = 'key' and k.active and k.expires_at > p_now and (p_user is null or k.user_name = p_user)
$$;
