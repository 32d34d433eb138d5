-- odc.end_api_key: end a key, and every ticket and session that the page made from it or from a key that was rotated to
-- it. A ticket or session of the page ends alone. The rows stay until they would have expired.
-- Returns    whether it was valid until now
-- Locks      api_key rows for update, the key first
create or replace function odc.end_api_key(p_digest text, p_now timestamptz)
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_key api_key;
begin
    update api_key set active = false where digest = p_digest and active and expires_at > p_now returning * into v_key;
    if v_key.digest is null then
        return false;
    elsif v_key.kind = 'key' then
        -- A separate statement, so that it sees all rows that were made before the key was locked.
        update api_key set active = false where origin = coalesce(v_key.origin, v_key.digest) and active;
    end if;
    return true;
end;
$$;
