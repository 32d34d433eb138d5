-- odc.submit_jobs: accept many requests, each completely or not at all; a refused request does not affect the others.
-- Arguments  p_requests          array of {uid, gid, user, operator, key, digest, dry_run, pending_limit, stored_limit, own_bytes,
--                                jobs: [job, ...]}; pending_limit: jobs and tasks that the user may have pending; stored_limit:
--                                bytes that the user may add per day; null: any number; own_bytes: of the jobs, without texts
--            p_digests, p_texts  scripts and environments by SHA-256, parallel
--            p_now               the daemon's clock; becomes submitted_at
-- Returns    per job of each request, both counted from 0, its id or the refusal; in a refused request the valid
--            jobs have neither. A dry run has no ids. A request sent again under its key (by uid) has the ids of
--            the first one
-- Locks      with dependencies or disks: all changes (_take_turn) and the jobs waited for; the partitions, against deletion;
--            idempotency by (uid, key); with a pending_limit, pending_bound by uid;
--            with a stored_limit, then stored_bound by uid; shape, new rows
-- Raises     nothing that a caller can cause: refusals are rows (OD001-OD016, OD041, OD042)
create or replace function odc.submit_jobs(p_requests jsonb, p_digests text[], p_texts text[], p_now timestamptz)
returns table (request integer, ord integer, job_id bigint, code text, message text, hint text)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    -- Individual fields of a job. The rest is resolved once for all equal jobs of a user; the result is a verdict.
    v_own      constant text[] := '{name,kind,script_digest,environment_digest,args,work_dir,umask,stdin,stdout,
                                    stderr,open_mode,comment,hold,requeue,signal_number,signal_before_s,
                                    signal_batch,submit_host,array,dependency,options,reservation}';
    v_heads    jsonb[];                -- the requests, without their jobs
    v_jobs     jsonb[];                -- the jobs of all requests, in order; for each:
    v_requests integer[];              --   its request, from 0
    v_ords     integer[];              --   its position there, from 0
    v_verdict  integer[];              --   its verdict, from 1; 0: its request was answered before
    v_ids      bigint[];               --   its id; null: refused, dry run, or answered before
    v_depends  boolean := jsonb_path_exists(p_requests, '$[*].jobs[*].dependency ? (@ != null)');
    v_disks    boolean := jsonb_path_exists(p_requests, '$[*].jobs[*].reservation.disk ? (@ != null)');
    v_builds   boolean := jsonb_path_exists(p_requests, '$[*].jobs[*].reservation.build_id ? (@ != null)');
    v_keyed    boolean := jsonb_path_exists(p_requests, '$[*].key ? (@ != null)');
    v_submitted boolean := exists (select from resource_limit where what = 'submitted');
    v_pending  boolean := jsonb_path_exists(p_requests, '$[*].pending_limit ? (@ != null)');
    v_stored   boolean := jsonb_path_exists(p_requests, '$[*].stored_limit ? (@ != null)');
    v_known    integer[] := '{}';      -- requests whose key already has an answer
    v_refused  integer[];
    v_lost     integer[];
    v_ask      record;
    v_terms    record;
    v_at       integer;
    v_count    integer := 0;           -- verdicts; for each:
    v_wanted   shape[] := '{}';        --   without ids; these are in
    v_shapes   integer[];
    v_accounts integer[] := '{}';
    v_qos      integer[] := '{}';
    v_limits   integer[] := '{}';
    v_codes    text[] := '{}';
    v_messages text[] := '{}';
    v_hints    text[] := '{}';
    v_code     text;
    v_message  text;
    v_hint     text;
begin
    -- A promoted or restored PostgreSQL may assign ids again that were used before; the next leader skips them.
    if exists (select from server as s, _find_lineage() as l
                where s.system_id is not null and (s.system_id, s.timeline) is distinct from (l.system_id, l.timeline)) then
        raise exception using errcode = 'OD040',
            message = 'PostgreSQL was promoted or restored, and no leader has prepared it yet',
            hint = 'Send it again in a few seconds, with the same idempotency key.';
    end if;
    select array_agg(r.body - 'jobs' order by r.n) into v_heads
      from jsonb_array_elements(p_requests) with ordinality as r (body, n);
    select array_agg(j.job order by r.n, j.n), array_agg(r.n - 1 order by r.n, j.n),
           array_agg(j.n - 1 order by r.n, j.n), array_agg(0 order by r.n, j.n)
      into v_jobs, v_requests, v_ords, v_verdict
      from jsonb_array_elements(p_requests) with ordinality as r (body, n)
     cross join jsonb_array_elements(r.body -> 'jobs') with ordinality as j (job, n);
    perform _set_now(p_now);
    if v_depends or v_disks or v_builds then
        perform _take_turn(p_now);
    end if;
    perform _hold_partitions();
    if v_keyed then
        v_known := array(select k.request from _kept_answers(v_heads) as k);
    end if;

    for v_ask in
        select j.job - v_own as ask, coalesce((h.head ->> 'operator')::boolean, false) as operator,
               coalesce((h.head ->> 'dry_run')::boolean, false) as dry_run, (h.head ->> 'uid')::integer as uid,
               h.head ->> 'user' as user_name, array_agg(j.n) as positions
          from unnest(v_jobs, v_requests) with ordinality as j (job, request, n)
          join unnest(v_heads) with ordinality as h (head, n) on h.n = j.request + 1
         where j.request <> all (v_known)
         group by 1, 2, 3, 4, 5
         order by min(j.n)
    loop
        v_terms := null;  v_code := null;  v_message := null;  v_hint := null;
        begin
            select * into v_terms from _resolve_job(v_ask.ask, v_ask.uid, v_ask.user_name, v_ask.operator, p_now);
        exception when others then
            if sqlstate not like 'OD%' then
                raise;
            end if;
            select null::shape as wanted, null::integer as account_id, null::integer as qos_id,
                   null::integer as time_limit_s into v_terms;
            get stacked diagnostics v_code = returned_sqlstate, v_message = message_text, v_hint = pg_exception_hint;
        end;
        v_count := v_count + 1;
        v_wanted[v_count] := v_terms.wanted;      v_accounts[v_count] := v_terms.account_id;
        v_qos[v_count] := v_terms.qos_id;         v_limits[v_count] := v_terms.time_limit_s;
        v_codes[v_count] := v_code;  v_messages[v_count] := v_message;  v_hints[v_count] := nullif(v_hint, '');
        foreach v_at in array v_ask.positions loop
            v_verdict[v_at] := v_count;
        end loop;
    end loop;
    if v_depends then
        for v_ask in select * from _refused_dependencies(v_jobs) loop
            v_count := v_count + 1;
            v_codes[v_count] := v_ask.code;  v_messages[v_count] := v_ask.message;  v_hints[v_count] := v_ask.hint;
            v_verdict[v_ask.position] := v_count;
        end loop;
    end if;

    if v_disks then
        for v_ask in select * from _refused_disks(v_heads, v_jobs, v_requests, p_now) loop
            v_count := v_count + 1;
            v_codes[v_count] := v_ask.code;  v_messages[v_count] := v_ask.message;  v_hints[v_count] := v_ask.hint;
            v_verdict[v_ask.position] := v_count;
        end loop;
    end if;

    if v_submitted then
        for v_ask in
            select r.*
              from (select array_agg((h.head ->> 'uid')::integer order by j.n) as uids,
                           array_agg(v.account_id order by j.n) as accounts, array_agg(v.qos_id order by j.n) as qos,
                           array_agg(case when v.n is not null then (v_wanted[j.verdict]).partition_ids::text end
                                     order by j.n) as partitions,
                           array_agg(coalesce((j.job #>> '{array,count}')::integer, 1) order by j.n) as tasks
                      from unnest(v_jobs, v_requests, v_verdict) with ordinality as j (job, request, verdict, n)
                      join unnest(v_heads) with ordinality as h (head, n) on h.n = j.request + 1
                      left join unnest(v_accounts, v_qos, v_codes) with ordinality
                                as v (account_id, qos_id, code, n) on v.n = j.verdict and v.code is null) as b
             cross join lateral _refused_by_submitted(b.uids, b.accounts, b.qos, b.partitions, b.tasks) as r
        loop
            v_count := v_count + 1;
            v_codes[v_count] := v_ask.code;  v_messages[v_count] := v_ask.message;  v_hints[v_count] := v_ask.hint;
            v_verdict[v_ask.position] := v_count;
        end loop;
    end if;

    if v_pending then
        for v_ask in
            select r.*
              from (select array_agg(j.request order by j.n) as requests,
                           array_agg(case when v.code is null and j.verdict > 0 then (h.head ->> 'uid')::integer end
                                     order by j.n) as uids,
                           array_agg(h.head ->> 'user' order by j.n) as users,
                           array_agg((h.head ->> 'pending_limit')::bigint order by j.n) as limits,
                           array_agg(coalesce((j.job #>> '{array,count}')::integer, 1) order by j.n) as tasks
                      from unnest(v_jobs, v_requests, v_verdict) with ordinality as j (job, request, verdict, n)
                      join unnest(v_heads) with ordinality as h (head, n) on h.n = j.request + 1
                      left join unnest(v_codes) with ordinality as v (code, n) on v.n = j.verdict) as b
             cross join lateral _refused_by_pending(b.requests, b.uids, b.users, b.limits, b.tasks, p_now) as r
        loop
            v_count := v_count + 1;
            v_codes[v_count] := v_ask.code;  v_messages[v_count] := v_ask.message;  v_hints[v_count] := v_ask.hint;
            v_verdict[v_ask.position] := v_count;
        end loop;
    end if;

    v_refused := array(
        select distinct j.request
          from unnest(v_requests, v_verdict) as j (request, verdict)
          join unnest(v_codes) with ordinality as v (code, n) on v.n = j.verdict
         where v.code is not null);
    if v_stored then
        for v_ask in
            select r.*
              from (select array_agg(case when h.n - 1 <> all (v_known || v_refused) then (h.head ->> 'uid')::integer end
                                     order by h.n) as uids,
                           array_agg(h.head ->> 'user' order by h.n) as users,
                           array_agg((h.head ->> 'stored_limit')::bigint order by h.n) as limits,
                           array_agg(b.bytes order by h.n) as bytes
                      from unnest(v_heads) with ordinality as h (head, n)
                      left join _stored_bytes(v_heads, v_jobs, v_requests, p_digests, p_texts) as b on b.request = h.n - 1) as a
             cross join lateral _refused_by_stored(a.uids, a.users, a.limits, a.bytes, p_now) as r
        loop
            v_count := v_count + 1;
            v_codes[v_count] := v_ask.code;  v_messages[v_count] := v_ask.message;  v_hints[v_count] := v_ask.hint;
            v_verdict[array_position(v_requests, v_ask.request)] := v_count;
            v_refused := v_refused || v_ask.request;
        end loop;
    end if;
    -- Of several requests with the same key, the first is accepted; ids follow the order of the requests.
    with taken as materialized (
        select min(h.n) - 1 as request
          from unnest(v_heads) with ordinality as h (head, n)
         where h.n - 1 <> all (v_known || v_refused) and not coalesce((h.head ->> 'dry_run')::boolean, false)
         group by case when h.head ->> 'key' is null then h.n end, h.head ->> 'uid', h.head ->> 'key'
    )
    select array_agg(case when t.request is not null then nextval('job_id_seq') end order by j.n) into v_ids
      from unnest(v_requests) with ordinality as j (request, n)
      left join taken as t on t.request = j.request;
    if v_keyed then
        v_lost := _claim_keys(v_heads, v_requests, v_ids, p_now);
        if v_lost is not null then
            v_ids := array(select case when j.request <> all (v_lost) then j.id end
                             from unnest(v_requests, v_ids) with ordinality as j (request, id, n) order by j.n);
        end if;
    end if;

    if array_remove(v_ids, null) <> '{}' then
        -- Done late, and in the same order everywhere: another transaction that needs the same new shape waits for this
        -- one.
        v_shapes := array_fill(null::integer, array[v_count]);
        for v_at in
            select k.verdict
              from (select distinct j.verdict
                      from unnest(v_verdict, v_ids) as j (verdict, id) where j.id is not null) as k
             order by hash_record_extended(v_wanted[k.verdict], 0)
        loop
            v_shapes[v_at] := _shape_id(v_wanted[v_at]);
        end loop;
        perform _write_jobs(
                   v_heads, v_jobs, v_requests, v_ids,
                   array_agg(v.shape_id order by j.n), array_agg(v.account_id order by j.n),
                   array_agg(v.qos_id order by j.n), array_agg(v.time_limit_s order by j.n),
                   p_digests, p_texts, p_now)
          from unnest(v_verdict) with ordinality as j (verdict, n)
          left join unnest(v_shapes, v_accounts, v_qos, v_limits) with ordinality
                    as v (shape_id, account_id, qos_id, time_limit_s, n) on v.n = j.verdict;
        if v_depends then
            perform _write_dependencies(v_ids, v_jobs, p_now);
        end if;
        if v_disks or v_builds then
            perform _judge_jobs(array_remove(v_ids, null), p_now);
        end if;
        notify odc;
    end if;

    -- If the key of a request is stored now (by this call, an earlier one or a concurrent one), the stored answer
    -- counts.
    if v_keyed then
        v_known := array(select k.request from _kept_answers(v_heads) as k where k.request <> all (v_refused));
    end if;
    return query
        select j.request, j.ord, j.id, v.code, v.message, v.hint
          from unnest(v_requests, v_ords, v_ids, v_verdict) as j (request, ord, id, verdict)
          left join unnest(v_codes, v_messages, v_hints) with ordinality as v (code, message, hint, n)
            on v.n = j.verdict
         where j.request <> all (v_known);
    if v_known <> '{}' then
        return query
            select k.request, (i.n - 1)::integer, i.id, k.code, k.message, k.hint
              from _kept_answers(v_heads) as k
             cross join unnest(k.job_ids) with ordinality as i (id, n)
             where k.request = any (v_known);
    end if;
end;
$$;
