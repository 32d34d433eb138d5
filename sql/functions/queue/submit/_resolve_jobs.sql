-- odc._resolve_jobs: resolve the jobs of a batch. Equal jobs of one user are resolved once: jobs that differ only in the
-- fields that _write_jobs copies unread.
-- Arguments  p_heads, p_jobs, p_requests  the requests, their jobs, and per job its request, counted from 0
--            p_known                      requests that were answered before; their jobs are left out
-- Returns    per group of equal jobs: their positions, counted from 1, and the result of _resolve_job or the refusal
create or replace function odc._resolve_jobs(
    p_heads jsonb[], p_jobs jsonb[], p_requests integer[], p_known integer[], p_now timestamptz)
returns table (
    positions integer[], wanted shape, account_id integer, qos_id integer, time_limit_s integer,
    code text, message text, hint text)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_own   constant text[] := '{name,kind,script_digest,environment_digest,args,work_dir,umask,stdin,stdout,
                                 stderr,open_mode,comment,hold,requeue,signal_number,signal_before_s,
                                 signal_batch,submit_host,array,dependency,options,reservation,mail}';
    v_ask   record;
    v_terms record;
begin
    for v_ask in
        select j.job - v_own as ask, coalesce((h.head ->> 'operator')::boolean, false) as operator,
               coalesce((h.head ->> 'dry_run')::boolean, false) as dry_run, (h.head ->> 'uid')::integer as uid,
               h.head ->> 'user' as user_name, array_agg(j.n::integer) as positions
          from unnest(p_jobs, p_requests) with ordinality as j (job, request, n)
          join unnest(p_heads) with ordinality as h (head, n) on h.n = j.request + 1
         where j.request <> all (p_known)
         group by 1, 2, 3, 4, 5
         order by min(j.n)
    loop
        positions := v_ask.positions;
        wanted := null;  account_id := null;  qos_id := null;  time_limit_s := null;
        code := null;  message := null;  hint := null;
        begin
            select * into v_terms from _resolve_job(v_ask.ask, v_ask.uid, v_ask.user_name, v_ask.operator, p_now);
            wanted := v_terms.wanted;  account_id := v_terms.account_id;
            qos_id := v_terms.qos_id;  time_limit_s := v_terms.time_limit_s;
        exception when others then
            if sqlstate not like 'OD%' then
                raise;
            end if;
            get stacked diagnostics code = returned_sqlstate, message = message_text, hint = pg_exception_hint;
            hint := nullif(hint, '');
        end;
        return next;
    end loop;
end;
$$;
