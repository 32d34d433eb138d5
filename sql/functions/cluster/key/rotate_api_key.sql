-- odc.rotate_api_key: replace a key by a new one, and end the old one. The new key has the same lifetime, but never
-- past the end that was set at the login. Page sessions made from the old key continue with the new one.
-- Returns    when it expires; null: the old key is no longer valid
-- Locks      api_key row for update
create or replace function odc.rotate_api_key(p_old text, p_digest text, p_prefix text, p_now timestamptz)
returns timestamptz
language sql volatile as $$
    with old as (
        update odc.api_key set active = false where digest = p_old and active and expires_at > p_now
        returning user_name, uid, gid, made_at, expires_at, coalesce(until_at, expires_at) as until_at,
                  coalesce(origin, digest) as origin
    )
    insert into odc.api_key (digest, user_name, uid, gid, made_at, expires_at, prefix, last_used_at, until_at, origin)
    select p_digest, user_name, uid, gid, p_now, least(p_now + (expires_at - made_at), until_at), p_prefix, p_now, until_at,
           origin
      from old
    returning expires_at
$$;
