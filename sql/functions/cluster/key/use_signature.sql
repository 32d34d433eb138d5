-- odc.use_signature: accept a signature, once.
-- Arguments  p_digest      SHA-256 of the signature
--            p_expires_at  until when it could be used again
-- Returns    false: it was used before
create or replace function odc.use_signature(p_digest text, p_expires_at timestamptz, p_now timestamptz)
returns boolean
language sql volatile as $$
    with kept as (
        insert into odc.login_signature (digest, expires_at) values (p_digest, greatest(p_expires_at, p_now))
            on conflict do nothing
        returning 1
    )
    select exists (select from kept)
$$;
