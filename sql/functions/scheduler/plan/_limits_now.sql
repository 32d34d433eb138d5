-- odc._limits_now: the limits that keep a job from starting now: too little of them is left, or protected jobs have
-- reserved what is left for a time at which the job would still run.
-- Arguments  p_lefts    per limit, see _plan_limits: what is left now
--            p_spans    what protected jobs have reserved: first how many of them lack a limit; then five values per limit:
--                       how many lack it, whether the ends of its running jobs are read (0: not yet, 1: yes, 2: they give
--                       nothing back), its first span, the first and the last position of these ends in the plan's gives;
--                       then six values per span: 0 the next span of the limit, 1 start and 2 end, microseconds from the
--                       pass's time, 3 amount, 4 what is left at its start, at least, 5 the protected job
--            p_buckets, p_needs, p_mores, p_from, p_to  what a job of the class needs, see _use_limits;  p_limit_us  its time limit,
--                       microseconds;  p_least, p_most  minimum and maximum number of its nodes
--            p_may_wait, p_depth  it may become protected, unless this many protected jobs lack the same limit
-- Returns    lacking: these limits; empty: the job may start;  tight: it may have to wait for these later
--            most: as p_most, or fewer nodes if limits allow fewer;  wait: it may become protected
--            unread: the ends of these limits' running jobs must be read for the answer; null: none
--            holder: the protected job that has reserved what this job lacks; null: it lacks what running jobs use
create or replace function odc._limits_now(
    p_lefts bigint[], p_spans bigint[], p_buckets integer[], p_needs bigint[], p_mores bigint[], p_from integer, p_to integer,
    p_limit_us bigint, p_least integer, p_most integer, p_may_wait boolean, p_depth integer,
    out lacking integer[], out tight integer[], out most integer, out wait boolean, out unread integer[], out holder bigint)
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_most constant integer := 16;     -- protected jobs that lack a limit
    v_bucket integer;  v_span integer;  v_rest bigint;  v_left bigint;  v_holder bigint;  v_sure boolean := false;
begin
    lacking := '{}';  tight := '{}';  most := p_most;  wait := p_may_wait;
    for i in p_from..p_to loop
        v_bucket := p_buckets[i];  v_left := p_lefts[v_bucket];  v_rest := v_left;
        v_span := p_spans[5 * v_bucket - 1];
        while v_span > 0 loop
            v_rest := v_rest - p_spans[v_span + 3];
            if p_spans[v_span + 4] < v_left and (p_spans[v_span + 1] < p_limit_us or p_spans[5 * v_bucket - 2] = 2) then
                v_left := p_spans[v_span + 4];  v_holder := p_spans[v_span + 5];
            end if;
            v_span := p_spans[v_span];
        end loop;
        if p_mores[i] > 0 and v_left >= p_needs[i] then
            most := least(most, p_least + (v_left - p_needs[i]) / p_mores[i]);
        end if;
        continue when v_rest >= p_needs[i];
        tight := tight || v_bucket;
        if p_spans[5 * v_bucket - 2] = 0 then
            unread := unread || v_bucket;
        end if;
        if v_left < p_needs[i] then
            if lacking = '{}' and p_lefts[v_bucket] >= p_needs[i] then
                holder := v_holder;
            end if;
            lacking := lacking || v_bucket;
            v_sure := v_sure or p_lefts[v_bucket] < p_needs[i];
            wait := wait and p_spans[1] < v_most and p_spans[5 * v_bucket - 2] <> 2 and p_spans[5 * v_bucket - 3] < p_depth;
        end if;
    end loop;
    if not wait and (v_sure or lacking = '{}') then
        unread := null;
    end if;
end;
$$;
