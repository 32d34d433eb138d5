-- odc.end_api_key: a key speaks for nobody from now on. Its row stays until the key would have expired.
-- Returns    whether it held until now
-- Locks      api_key row for update
create or replace function odc.end_api_key(p_digest text, p_now timestamptz)
returns boolean
language sql volatile as $$
    with ended as (
        update odc.api_key set active = false where digest = p_digest and active and expires_at > p_now returning 1
    )
    select exists (select from ended)
$$;
