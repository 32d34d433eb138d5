-- odc._use_limits: take what a job needs from its limits.
-- Arguments  p_left, p_consumes  per bucket, see _plan_limits: what is left; false: starts do not use it up
--            p_buckets, p_needs, p_mores  what a job of the class needs at least, and per node more, in rows p_from..p_to
--            p_more  number of nodes above the minimum
create or replace function odc._use_limits(
    p_left bigint[], p_consumes boolean[], p_buckets integer[], p_needs bigint[], p_mores bigint[],
    p_from integer, p_to integer, p_more integer)
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
begin
    for i in p_from..p_to loop
        if p_consumes[p_buckets[i]] then
            p_left[p_buckets[i]] := p_left[p_buckets[i]] - p_needs[i] - p_more * p_mores[i];
        end if;
    end loop;
    return p_left;
end;
$$;
