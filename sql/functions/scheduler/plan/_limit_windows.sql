-- odc._limit_windows: when limits let a job start, so that enough of each is left until its end.
-- Arguments  p_tight  the limits that matter, see _limits_now; all are read;  p_lefts, p_spans  see there
--            p_buckets, p_needs, p_from, p_to  what the job needs;  p_limit_us  its time limit, microseconds
--            p_gives … p_limits_s  see _limit_ends
-- Returns    two values per window, in order: first and last moment at which it may start; empty: it never may
create or replace function odc._limit_windows(
    p_tight integer[], p_lefts bigint[], p_spans bigint[], p_buckets integer[], p_needs bigint[], p_mores bigint[],
    p_from integer, p_to integer, p_limit_us bigint,
    p_gives bigint[], p_used integer[], p_use_from integer[], p_use_to integer[], p_limits_s integer[])
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_forever constant bigint := 4000000000000000000;
    v_windows bigint[] := '{}';  v_begin bigint;
    v_needs bigint[];  v_lacking integer := 0;    -- per limit what the job needs; of how many limits too little is left
    v_ats bigint[] := '{}';  v_limits integer[];  v_amounts bigint[];  v_limit integer;  v_was boolean;
    v_starts integer[] := '{}';  v_span integer;
begin
    for i in p_from..p_to loop
        if p_buckets[i] = any (p_tight) then
            v_needs[p_buckets[i]] := p_needs[i];  v_lacking := v_lacking + (p_lefts[p_buckets[i]] < p_needs[i])::integer;
            v_span := p_spans[5 * p_buckets[i] - 1];
            while v_span > 0 loop
                v_starts := v_starts || array[p_buckets[i], v_span];  v_span := p_spans[v_span];
            end loop;
        end if;
    end loop;
    select coalesce(array_agg(c.at order by c.at, c.bucket), '{}'), array_agg(c.bucket order by c.at, c.bucket),
           array_agg(c.amount order by c.at, c.bucket)
      into v_ats, v_limits, v_amounts
      from (select u.bucket, u.at, sum(u.amount)::bigint as amount
              from (select w.bucket, w.at, w.amount
                      from _limit_ends(p_tight, p_spans, p_gives, p_used, p_use_from, p_use_to, p_buckets, p_needs, p_mores, p_limits_s,
                                       null) as e
                     cross join lateral unnest(e.buckets, e.ats, e.amounts) as w (bucket, at, amount)
                     union all
                    select v_starts[s.i], p_spans[v_starts[s.i + 1] + w.part],
                           case w.part when 1 then -1 else 1 end * p_spans[v_starts[s.i + 1] + 3]
                      from generate_series(1, cardinality(v_starts), 2) as s (i)
                     cross join unnest('{1,2}'::integer[]) as w (part)
                     where p_spans[v_starts[s.i + 1] + w.part] < v_forever) as u
             group by u.bucket, u.at) as c;
    v_begin := case when v_lacking = 0 then 0 end;
    for i in 1..cardinality(v_ats) loop
        v_limit := v_limits[i];
        v_was := p_lefts[v_limit] < v_needs[v_limit];
        p_lefts[v_limit] := p_lefts[v_limit] + v_amounts[i];
        v_lacking := v_lacking - v_was::integer + (p_lefts[v_limit] < v_needs[v_limit])::integer;
        continue when v_ats[i + 1] = v_ats[i];
        if v_lacking = 0 then
            v_begin := coalesce(v_begin, v_ats[i]);
        elsif v_begin is not null then
            if v_ats[i] - p_limit_us >= v_begin then
                v_windows := v_windows || array[v_begin, v_ats[i] - p_limit_us];
            end if;
            v_begin := null;
        end if;
    end loop;
    return case when v_begin is null then v_windows else v_windows || array[v_begin, 9000000000000000000] end;
end;
$$;
