-- odc.open_keys: the keys and sessions of these whose open connections may continue.
-- Arguments  p_digests  any number of digests
-- Returns    those that were not ended. expires_at: the end of streams, which clients reopen; until_at: the end of
--            terminals and tunnels, which cannot be resumed and continue until the login ends
create or replace function odc.open_keys(p_digests text[])
returns table (digest text, expires_at timestamptz, until_at timestamptz)
language sql stable as $$
    select k.digest, k.expires_at, case when k.kind = 'key' then greatest(k.until_at, k.expires_at) else k.expires_at end
      from odc.api_key as k
     where k.digest = any (p_digests) and k.active
$$;
