-- odc._accept_jobs: write the accepted jobs of a batch and the shapes that are new.
-- Arguments  p_heads, p_jobs, p_requests  the requests, their jobs, and per job its request, counted from 0
--            p_ids                        per job its id; null: not accepted
--            p_resolved                   per job the position of its values in the next four arrays, counted from 1
--            p_wanted, p_accounts, p_qos, p_limits_s  shapes, accounts, QOS and time limits of resolved jobs
--            p_digests, p_texts           scripts and environments by SHA-256, parallel
-- Locks      shape, as _shape_id; then as _write_jobs
create or replace function odc._accept_jobs(
    p_heads jsonb[], p_jobs jsonb[], p_requests integer[], p_ids bigint[], p_resolved integer[], p_wanted shape[],
    p_accounts integer[], p_qos integer[], p_limits_s integer[], p_digests text[], p_texts text[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_shapes integer[] := array_fill(null::integer, array[cardinality(p_wanted)]);
    v_at     integer;
begin
    -- Done late, and in the same order everywhere: another transaction that needs the same new shape waits for this one.
    for v_at in
        select k.n
          from (select distinct j.resolved as n
                  from unnest(p_resolved, p_ids) as j (resolved, id) where j.id is not null) as k
         order by hash_record_extended(p_wanted[k.n], 0)
    loop
        v_shapes[v_at] := _shape_id(p_wanted[v_at]);
    end loop;
    perform _write_jobs(
               p_heads, p_jobs, p_requests, p_ids,
               array_agg(v.shape_id order by j.n), array_agg(v.account_id order by j.n),
               array_agg(v.qos_id order by j.n), array_agg(v.time_limit_s order by j.n),
               p_digests, p_texts, p_now)
      from unnest(p_resolved) with ordinality as j (resolved, n)
      left join unnest(v_shapes, p_accounts, p_qos, p_limits_s) with ordinality
                as v (shape_id, account_id, qos_id, time_limit_s, n) on v.n = j.resolved;
end;
$$;
