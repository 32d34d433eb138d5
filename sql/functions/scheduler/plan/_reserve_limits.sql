-- odc._reserve_limits: reserve what a protected job needs of its limits, from its planned start to its end.
-- Arguments  p_spans, p_lefts  see _limits_now;  p_lacking  limits that the job lacks now
--            p_buckets, p_needs, p_consumes, p_from, p_to  see _use_limits;  p_job_id, p_at, p_end  the job
--            p_gives … p_limits_s  see _limit_ends
create or replace function odc._reserve_limits(
    p_spans bigint[], p_lefts bigint[], p_lacking integer[], p_buckets integer[], p_needs bigint[], p_mores bigint[],
    p_consumes boolean[], p_from integer, p_to integer, p_job_id bigint, p_at bigint, p_end bigint,
    p_gives bigint[], p_used integer[], p_use_from integer[], p_use_to integer[], p_limits_s integer[])
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_bucket integer;  v_span integer;  v_new integer;  v_left bigint;  v_end bigint;
begin
    for i in p_from..p_to loop
        v_bucket := p_buckets[i];
        continue when not p_consumes[v_bucket];
        v_end := case when p_spans[5 * v_bucket - 2] = 2 then 9000000000000000000 else p_end end;
        v_left := p_lefts[v_bucket] - p_needs[i];
        if p_spans[5 * v_bucket - 2] = 1 then
            v_left := v_left + (
                select coalesce(sum(u.amount), 0)
                  from _limit_ends(array[v_bucket], p_spans, p_gives, p_used, p_use_from, p_use_to, p_buckets, p_needs, p_mores,
                                   p_limits_s, p_at) as e
                 cross join lateral unnest(e.amounts) as u (amount));
        end if;
        v_span := p_spans[5 * v_bucket - 1];
        while v_span > 0 loop
            if p_spans[v_span + 1] <= p_at and p_spans[v_span + 2] > p_at then
                v_left := v_left - p_spans[v_span + 3];
            end if;
            if p_spans[v_span + 1] >= p_at and p_spans[v_span + 1] < v_end then
                p_spans[v_span + 4] := p_spans[v_span + 4] - p_needs[i];
            end if;
            v_span := p_spans[v_span];
        end loop;
        v_new := cardinality(p_spans) + 1;
        p_spans[v_new] := p_spans[5 * v_bucket - 1];  p_spans[v_new + 1] := p_at;  p_spans[v_new + 2] := v_end;
        p_spans[v_new + 3] := p_needs[i];  p_spans[v_new + 4] := v_left;  p_spans[v_new + 5] := p_job_id;
        p_spans[5 * v_bucket - 1] := v_new;
    end loop;
    if p_lacking <> '{}' then
        p_spans[1] := p_spans[1] + 1;
        foreach v_bucket in array p_lacking loop
            p_spans[5 * v_bucket - 3] := p_spans[5 * v_bucket - 3] + 1;
        end loop;
    end if;
    return p_spans;
end;
$$;
