-- odc._kept_answers: answers to requests whose idempotency key is known.
-- Arguments  p_heads  requests {uid, key, digest, dry_run}; their positions count from 1
-- Returns    per known request, counted from 0, the ids given to the first, or OD014 KeyReused
create or replace function odc._kept_answers(p_heads jsonb[])
returns table (request integer, job_ids bigint[], code text, message text, hint text)
language sql volatile as $$
    select (h.n - 1)::integer,
           case when i.digest = h.head ->> 'digest' then i.job_ids else '{null}' end,
           case when i.digest <> h.head ->> 'digest' then 'OD014' end,
           case when i.digest <> h.head ->> 'digest'
                then format('idempotency key "%s" was used for another request', i.key) end,
           case when i.digest <> h.head ->> 'digest'
                then 'Send a new key with a new request; the same key repeats the first answer for 48 hours.' end
      from unnest(p_heads) with ordinality as h (head, n)
      join odc.idempotency as i on i.uid = (h.head ->> 'uid')::integer and i.key = h.head ->> 'key'
     where not coalesce((h.head ->> 'dry_run')::boolean, false)
$$;
