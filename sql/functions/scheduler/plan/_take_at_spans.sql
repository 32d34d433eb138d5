-- odc._take_at_spans: take what a job that starts now uses of its limits from what is left at the starts of protected jobs.
-- Arguments  p_spans  see _limits_now;  the others  as for _use_limits;  p_limit_us  the job's end
create or replace function odc._take_at_spans(
    p_spans bigint[], p_buckets integer[], p_needs bigint[], p_mores bigint[], p_from integer, p_to integer, p_more integer,
    p_limit_us bigint)
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_span integer;
begin
    for i in p_from..p_to loop
        v_span := p_spans[5 * p_buckets[i] - 1];
        while v_span > 0 loop
            -- While the ends are not read, what ends before a span is not counted there either.
            if p_spans[v_span + 1] < p_limit_us or p_spans[5 * p_buckets[i] - 2] <> 1 then
                p_spans[v_span + 4] := p_spans[v_span + 4] - p_needs[i] - p_more * p_mores[i];
            end if;
            v_span := p_spans[v_span];
        end loop;
    end loop;
    return p_spans;
end;
$$;
