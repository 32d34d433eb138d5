-- odc._limits_left: the limits that have less left than one more job of a class needs.
-- Arguments  p_left  per bucket, see _plan_limits;  p_from, p_to  the class's rows of p_buckets and p_needs
-- Returns    buckets; empty: the job may start
create or replace function odc._limits_left(p_left bigint[], p_buckets integer[], p_needs bigint[], p_from integer, p_to integer)
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_short integer[] := '{}';
begin
    for i in p_from..p_to loop
        if p_left[p_buckets[i]] < p_needs[i] then
            v_short := v_short || p_buckets[i];
        end if;
    end loop;
    return v_short;
end;
$$;
