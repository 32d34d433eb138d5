-- odc._repeats_request: whether this request to create something was answered before. Records it if it was not.
-- Arguments  p_key, p_digest  idempotency key, and a digest that identifies its request; null: none
-- Locks      idempotency by (uid, key); the caller holds the turn
-- Raises     OD014 KeyReused
create or replace function odc._repeats_request(p_actor jsonb, p_key text, p_digest text, p_now timestamptz)
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_digest text;
begin
    if p_key is null then
        return false;
    end if;
    select i.digest into v_digest from idempotency as i where i.uid = (p_actor ->> 'uid')::integer and i.key = p_key;
    if not found then
        insert into idempotency (uid, key, digest, job_ids, made_at)
        values ((p_actor ->> 'uid')::integer, p_key, p_digest, '{}', p_now);
        return false;
    elsif v_digest <> p_digest then
        raise exception using errcode = 'OD014',
            message = format('idempotency key "%s" was used for another request', p_key),
            hint = 'Send a new key with a new request; the same key repeats the first answer for 48 hours.';
    end if;
    return true;
end;
$$;
