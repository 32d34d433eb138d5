-- odc._stored_bytes: the bytes that each request would add to the database: its jobs as sent, and the scripts and
-- environments that are not stored yet. A text counts once per request, however many jobs or tasks share it.
-- Arguments  p_heads, p_jobs, p_requests  the requests, their jobs, and per job its request, counted from 0;
--                                         own_bytes of a head: the size of its jobs
--            p_digests, p_texts           texts by SHA-256, parallel
-- Returns    one row per request that has a stored_limit
create or replace function odc._stored_bytes(
    p_heads jsonb[], p_jobs jsonb[], p_requests integer[], p_digests text[], p_texts text[])
returns table (request integer, bytes bigint)
language sql stable set search_path = odc, pg_temp as $$
    with fresh as materialized (
        select t.digest, octet_length(t.content) as bytes
          from unnest(p_digests, p_texts) as t (digest, content)
         where not exists (select from job_text as o where o.digest = t.digest)
    ), used as materialized (
        select distinct j.request, d.digest
          from unnest(p_jobs, p_requests) as j (job, request)
         cross join lateral (values (j.job ->> 'script_digest'), (j.job ->> 'environment_digest')) as d (digest)
         where exists (select from fresh)
    ), texts as materialized (
        select u.request, sum(f.bytes) as bytes from used as u join fresh as f on f.digest = u.digest group by u.request
    )
    select (h.n - 1)::integer, coalesce((h.head ->> 'own_bytes')::bigint, 0) + coalesce(t.bytes, 0)::bigint
      from unnest(p_heads) with ordinality as h (head, n)
      left join texts as t on t.request = h.n - 1
     where h.head ->> 'stored_limit' is not null;
$$;
