-- odc.keep_api_key: store the user of an API key. Only the key's SHA-256 is kept.
-- Arguments  p_digest      hex; an existing digest keeps its owner
--            p_expires_at  from then on the key is invalid
--            p_prefix      first characters of the key, to identify it; null: none
--            p_until_at    rotation cannot extend it beyond this; null: p_expires_at
create or replace function odc.keep_api_key(
    p_digest text, p_user text, p_uid integer, p_gid integer, p_now timestamptz, p_expires_at timestamptz,
    p_prefix text default null, p_until_at timestamptz default null)
returns void
language sql volatile as $$
    insert into odc.api_key (digest, user_name, uid, gid, made_at, expires_at, prefix, until_at)
    values (p_digest, p_user, p_uid, p_gid, p_now, p_expires_at, p_prefix, p_until_at)
        on conflict (digest) do nothing
$$;
