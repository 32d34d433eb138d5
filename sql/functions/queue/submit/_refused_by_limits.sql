-- odc._refused_by_limits: the jobs of a batch that exceed a limit: on submitted jobs, on the user's pending jobs, or on the
-- bytes that the user may store. Each check leaves out what was refused before it.
-- Arguments  p_heads, p_jobs, p_requests   the requests, their jobs, and per job its request, counted from 0
--            p_codes                       per job the code of its refusal so far, or null
--            p_resolved                    per job the position of its values in the next three arrays, counted from 1;
--                                          0: its request was answered before
--            p_wanted, p_accounts, p_qos   shapes, accounts and QOS of resolved jobs
--            p_digests, p_texts            scripts and environments by SHA-256, parallel
--            p_pending, p_stored           whether any request has a pending_limit, a stored_limit
-- Returns    position: of a refused job, counted from 1; of a refused request, its first job
-- Locks      the limits on submitted jobs that apply; pending_bound by uid; then stored_bound by uid
create or replace function odc._refused_by_limits(
    p_heads jsonb[], p_jobs jsonb[], p_requests integer[], p_codes text[], p_resolved integer[], p_wanted shape[],
    p_accounts integer[], p_qos integer[], p_digests text[], p_texts text[], p_pending boolean, p_stored boolean,
    p_now timestamptz)
returns table ("position" integer, code text, message text, hint text)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_codes text[] := p_codes;
begin
    if exists (select from resource_limit where what = 'submitted') then
        for "position", code, message, hint in
            select r."position", r.code, r.message, r.hint
              from (select array_agg((h.head ->> 'uid')::integer order by j.n) as uids,
                           array_agg(v.account_id order by j.n) as accounts, array_agg(v.qos_id order by j.n) as qos,
                           array_agg(case when v.n is not null then (p_wanted[j.resolved]).partition_ids::text end
                                     order by j.n) as partitions,
                           array_agg(coalesce((j.job #>> '{array,count}')::integer, 1) order by j.n) as tasks
                      from unnest(p_jobs, p_requests, p_resolved, v_codes) with ordinality
                           as j (job, request, resolved, code, n)
                      join unnest(p_heads) with ordinality as h (head, n) on h.n = j.request + 1
                      left join unnest(p_accounts, p_qos) with ordinality as v (account_id, qos_id, n)
                        on v.n = j.resolved and j.code is null) as b
             cross join lateral _refused_by_submitted(b.uids, b.accounts, b.qos, b.partitions, b.tasks) as r
        loop
            v_codes["position"] := code;
            return next;
        end loop;
    end if;

    if p_pending then
        for "position", code, message, hint in
            select r."position", r.code, r.message, r.hint
              from (select array_agg(j.request order by j.n) as requests,
                           array_agg(case when j.code is null and j.resolved > 0 then (h.head ->> 'uid')::integer end
                                     order by j.n) as uids,
                           array_agg(h.head ->> 'user' order by j.n) as users,
                           array_agg((h.head ->> 'pending_limit')::bigint order by j.n) as limits,
                           array_agg(coalesce((j.job #>> '{array,count}')::integer, 1) order by j.n) as tasks
                      from unnest(p_jobs, p_requests, p_resolved, v_codes) with ordinality
                           as j (job, request, resolved, code, n)
                      join unnest(p_heads) with ordinality as h (head, n) on h.n = j.request + 1) as b
             cross join lateral _refused_by_pending(b.requests, b.uids, b.users, b.limits, b.tasks, p_now) as r
        loop
            v_codes["position"] := code;
            return next;
        end loop;
    end if;

    if p_stored then
        return query
            select array_position(p_requests, r.request), r.code, r.message, r.hint
              from (select array_agg(case when f.request is null then (h.head ->> 'uid')::integer end order by h.n) as uids,
                           array_agg(h.head ->> 'user' order by h.n) as users,
                           array_agg((h.head ->> 'stored_limit')::bigint order by h.n) as limits,
                           array_agg(s.bytes order by h.n) as bytes
                      from unnest(p_heads) with ordinality as h (head, n)
                      left join _stored_bytes(p_heads, p_jobs, p_requests, p_digests, p_texts) as s on s.request = h.n - 1
                      left join (select distinct j.request
                                   from unnest(p_requests, p_resolved, v_codes) as j (request, resolved, code)
                                  where j.code is not null or j.resolved = 0) as f on f.request = h.n - 1) as b
             cross join lateral _refused_by_stored(b.uids, b.users, b.limits, b.bytes, p_now) as r;
    end if;
end;
$$;
