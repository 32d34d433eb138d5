-- odc.holding_keys: the keys of these that are still valid.
create or replace function odc.holding_keys(p_digests text[], p_now timestamptz)
returns setof text
language sql stable as $$
    select digest from odc.api_key where digest = any (p_digests) and active and expires_at > p_now
$$;
