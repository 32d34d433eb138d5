-- odc._limit_ends: when running jobs and the starts of this pass give back what they use of limits.
-- Arguments  p_wanted  limits;  p_spans, p_gives  see _limits_now and _limit_gives
--            p_used    two values per start: its class, its nodes above the minimum
--            p_use_from … p_mores, p_limits_s  per class what it needs, and its time limit
--            p_until   no later ones; null: all
-- Returns    microseconds from the pass's time
create or replace function odc._limit_ends(
    p_wanted integer[], p_spans bigint[], p_gives bigint[], p_used integer[], p_use_from integer[], p_use_to integer[],
    p_buckets integer[], p_needs bigint[], p_mores bigint[], p_limits_s integer[], p_until bigint,
    out buckets integer[], out ats bigint[], out amounts bigint[])
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_ends integer := 0;  v_bucket integer;  v_class integer;  v_at bigint;
begin
    buckets := '{}';  ats := '{}';  amounts := '{}';
    foreach v_bucket in array p_wanted loop
        for i in p_spans[5 * v_bucket]..p_spans[5 * v_bucket + 1] by 2 loop
            exit when p_gives[i] > p_until;
            v_ends := v_ends + 1;
            buckets[v_ends] := v_bucket;  ats[v_ends] := p_gives[i];  amounts[v_ends] := p_gives[i + 1];
        end loop;
    end loop;
    for start in 1..cardinality(p_used) by 2 loop
        v_class := p_used[start];  v_at := p_limits_s[v_class] * 1000000::bigint;
        continue when p_limits_s[v_class] = 2147483647 or v_at > p_until;
        for i in p_use_from[v_class]..p_use_to[v_class] loop
            if p_buckets[i] = any (p_wanted) then
                v_ends := v_ends + 1;
                buckets[v_ends] := p_buckets[i];  ats[v_ends] := v_at;  amounts[v_ends] := p_needs[i] + p_used[start + 1] * p_mores[i];
            end if;
        end loop;
    end loop;
end;
$$;
