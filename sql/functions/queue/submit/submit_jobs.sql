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
-- The steps are functions; this one keeps the arrays that they share, because passing changed arrays back would copy them.
create or replace function odc.submit_jobs(p_requests jsonb, p_digests text[], p_texts text[], p_now timestamptz)
returns table (request integer, ord integer, job_id bigint, code text, message text, hint text)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_heads    jsonb[];                -- the requests, without their jobs
    v_jobs     jsonb[];                -- the jobs of all requests, in order; for each:
    v_requests integer[];              --   its request, from 0
    v_ords     integer[];              --   its position there, from 0
    v_resolved integer[];              --   the position of its values in the arrays of resolved jobs, from 1;
                                       --   0: its request was answered before
    v_ids      bigint[];               --   its id; null: refused, dry run, or answered before
    v_codes    text[];                 --   its refusal
    v_messages text[];
    v_hints    text[];
    v_wanted   shape[] := '{}';        -- resolved jobs: their shapes, without ids
    v_accounts integer[] := '{}';
    v_qos      integer[] := '{}';
    v_limits_s integer[] := '{}';
    v_depends  boolean := jsonb_path_exists(p_requests, '$[*].jobs[*].dependency ? (@ != null)');
    v_disks    boolean := jsonb_path_exists(p_requests, '$[*].jobs[*].reservation.disk ? (@ != null)');
    v_builds   boolean := jsonb_path_exists(p_requests, '$[*].jobs[*].reservation.build_id ? (@ != null)');
    v_parts    boolean := jsonb_path_exists(p_requests, '$[*].jobs[*].components ? (@ != null)');
    v_keyed    boolean := jsonb_path_exists(p_requests, '$[*].key ? (@ != null)');
    v_pending  boolean := jsonb_path_exists(p_requests, '$[*].pending_limit ? (@ != null)');
    v_stored   boolean := jsonb_path_exists(p_requests, '$[*].stored_limit ? (@ != null)');
    v_known    integer[] := '{}';      -- requests whose key already has an answer
    v_refused  integer[];
    v_missing  record;                 -- jobs whose dependencies do not exist, by position, and why
    v_result   record;
    v_count    integer := 0;           -- of resolved jobs
    v_at       integer;
begin
    perform _refuse_unrecovered();
    select array_agg(r.body - 'jobs' order by r.n) into v_heads
      from jsonb_array_elements(p_requests) with ordinality as r (body, n);
    select array_agg(j.job order by r.n, j.n), array_agg(r.n - 1 order by r.n, j.n),
           array_agg(j.n - 1 order by r.n, j.n), array_agg(0 order by r.n, j.n), array_agg(null::text order by r.n, j.n)
      into v_jobs, v_requests, v_ords, v_resolved, v_codes
      from jsonb_array_elements(p_requests) with ordinality as r (body, n)
     cross join jsonb_array_elements(r.body -> 'jobs') with ordinality as j (job, n);
    v_messages := v_codes;  v_hints := v_codes;
    perform _set_now(p_now);
    -- Before the turn: it may take long.
    if v_depends then
        v_jobs := _depend_on_leaders(v_jobs);
    end if;
    select array_agg(m.position) as positions, array_agg(m.code) as codes, array_agg(m.message) as messages,
           array_agg(m.hint) as hints
      into v_missing
      from _missing_targets(v_jobs) as m
     where v_depends;
    if v_depends or v_disks or v_builds then
        perform _take_turn(p_now);
    end if;
    perform _hold_partitions();
    if v_keyed then
        v_known := array(select k.request from _kept_answers(v_heads) as k);
    end if;

    for v_result in select * from _resolve_jobs(v_heads, v_jobs, v_requests, v_known, p_now) loop
        v_count := v_count + 1;
        v_wanted[v_count] := v_result.wanted;  v_accounts[v_count] := v_result.account_id;
        v_qos[v_count] := v_result.qos_id;     v_limits_s[v_count] := v_result.time_limit_s;
        foreach v_at in array v_result.positions loop
            v_resolved[v_at] := v_count;
            v_codes[v_at] := v_result.code;  v_messages[v_at] := v_result.message;  v_hints[v_at] := v_result.hint;
        end loop;
    end loop;
    if v_depends or v_disks then
        for v_result in
            select * from _refused_dependencies(v_heads, v_jobs, v_requests) where v_depends
             union all
            select * from unnest(v_missing.positions, v_missing.codes, v_missing.messages, v_missing.hints)
             union all
            select * from _refused_disks(v_heads, v_jobs, v_requests, p_now) where v_disks
        loop
            v_at := v_result.position;
            v_codes[v_at] := v_result.code;  v_messages[v_at] := v_result.message;  v_hints[v_at] := v_result.hint;
        end loop;
    end if;
    for v_result in
        select * from _refused_by_limits(v_heads, v_jobs, v_requests, v_codes, v_resolved, v_wanted, v_accounts, v_qos,
                                         p_digests, p_texts, v_pending, v_stored, p_now)
    loop
        v_at := v_result.position;
        v_codes[v_at] := v_result.code;  v_messages[v_at] := v_result.message;  v_hints[v_at] := v_result.hint;
    end loop;
    v_refused := array(
        select distinct j.request from unnest(v_requests, v_codes) as j (request, code) where j.code is not null);

    v_ids := _assign_ids(v_heads, v_requests, v_known || v_refused, v_keyed, p_now,
                         case when v_parts then array(
                             select coalesce(jsonb_array_length(nullif(j.job -> 'components', 'null')), 1)
                               from unnest(v_jobs) with ordinality as j (job, n) order by j.n) end);
    if array_remove(v_ids, null) <> '{}' then
        perform _accept_jobs(v_heads, v_jobs, v_requests, v_ids, v_resolved, v_wanted, v_accounts, v_qos, v_limits_s,
                             p_digests, p_texts, p_now);
        if v_depends then
            perform _write_dependencies(v_ids, v_jobs, p_now);
        end if;
        if v_disks or v_builds then
            perform _judge_jobs(array_remove(v_ids, null), p_now);
        end if;
        perform _wake();
    end if;

    -- If the key of a request is stored now (by this call, an earlier one or a concurrent one), the stored answer
    -- counts.
    if v_keyed then
        v_known := array(select k.request from _kept_answers(v_heads) as k where k.request <> all (v_refused));
    end if;
    return query
        select j.request, j.ord, j.id, j.code, j.message, j.hint
          from unnest(v_requests, v_ords, v_ids, v_codes, v_messages, v_hints) as j (request, ord, id, code, message, hint)
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
