-- odc.use_api_key: the user of a key, if it is valid; records its use, once a minute.
-- Locks      api_key row for update, if the last recorded use is a minute old
create or replace function odc.use_api_key(p_digest text, p_now timestamptz)
returns table (user_name text, uid integer, gid integer)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_key api_key;
begin
    select * into v_key from api_key as k where k.digest = p_digest and k.active and k.expires_at > p_now;
    if v_key.digest is null then
        return;
    elsif v_key.last_used_at is null or v_key.last_used_at <= p_now - interval '1 minute' then
        -- Another request that is writing it now records the same use.
        update api_key as k set last_used_at = p_now
         where k.digest = (select d.digest from api_key as d where d.digest = p_digest for update skip locked);
    end if;
    return query select v_key.user_name, v_key.uid, v_key.gid;
end;
$$;
