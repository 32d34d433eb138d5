-- odc._claim_keys: store the ids of requests under their idempotency keys.
-- Arguments  p_heads            the requests
--            p_requests, p_ids  per job its request, counted from 0, and its id or null, parallel
-- Returns    requests whose key another transaction stored first
-- Locks      idempotency by (uid, key): waits for a transaction that is storing the same key
create or replace function odc._claim_keys(p_heads jsonb[], p_requests integer[], p_ids bigint[], p_now timestamptz)
returns integer[]
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_lost integer[];
begin
    with wanted as materialized (
        select j.request, (h.head ->> 'uid')::integer as uid, h.head ->> 'key' as key, h.head ->> 'digest' as digest,
               array_agg(j.id order by j.n) as job_ids
          from unnest(p_requests, p_ids) with ordinality as j (request, id, n)
          join unnest(p_heads) with ordinality as h (head, n) on h.n = j.request + 1
         where j.id is not null and h.head ->> 'key' is not null
         group by j.request, h.head
    ), claimed as (
        insert into idempotency (uid, key, digest, job_ids, made_at)
        select uid, key, digest, job_ids, p_now from wanted order by uid, key
            on conflict do nothing
        returning uid, key
    )
    select array_agg(w.request) into v_lost
      from wanted as w left join claimed as c on c.uid = w.uid and c.key = w.key
     where c.uid is null;
    return v_lost;
end;
$$;
