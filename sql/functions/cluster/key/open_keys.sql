-- odc.open_keys: which of these keys and sessions may keep open what they opened.
-- Arguments  p_digests  as many as there are
-- Returns    those that nobody has ended. expires_at: streams, which their clients ask for again, end then; until_at:
--            terminals and tunnels, which cannot be taken up again, go on until the login ends
create or replace function odc.open_keys(p_digests text[])
returns table (digest text, expires_at timestamptz, until_at timestamptz)
language sql stable as $$
    select k.digest, k.expires_at, case when k.kind = 'key' then greatest(k.until_at, k.expires_at) else k.expires_at end
      from odc.api_key as k
     where k.digest = any (p_digests) and k.active
$$;
