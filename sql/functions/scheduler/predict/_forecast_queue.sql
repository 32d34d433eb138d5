-- odc._forecast_queue: the first jobs of the queue in the order of their policies. The forecast reads the queue only
-- here. The classes' heads are merged as in a pass, slice by slice, until there are enough. Classes that are over a
-- limit or lack licences now are left out, as a pass skips them: their start is not in sight.
-- Arguments  p_limit    number of jobs
--            p_without  leave these out; places are counted with them
create or replace function odc._forecast_queue(p_now timestamptz, p_limit integer, p_without bigint[] default '{}')
returns table (place integer, job_id bigint, shape_id integer, time_limit_s integer, uid integer, tasks integer, backfill text)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_c record;                 -- _plan_classes
    v_l record;                 -- _plan_buckets
    v_q record;                 -- _plan_slice
    v_chunk integer;  v_cap integer[];  v_after_ats timestamptz[];  v_after_ids bigint[];
    v_classes integer[];  v_jobs bigint[];  v_counts integer[];
    i integer;  j integer;  v_sure integer;
begin
    select * into v_c from _plan_classes(p_now, null, null, null);
    if v_c.shape_ids is null then
        return;
    end if;
    v_chunk := greatest(50, 4 * p_limit / cardinality(v_c.shape_ids));
    v_cap := array_fill(p_limit, array[cardinality(v_c.shape_ids)]);
    select * into v_l from _plan_buckets(p_now, v_c.kept_shape_ids, v_c.limits_s, v_c.uids, v_c.accounts, v_c.qos_ids);
    if v_l.use_from is not null then
        for i in 1..cardinality(v_cap) loop
            for j in v_l.use_from[i]..v_l.use_to[i] loop
                if v_l.left[v_l.use_bucket[j]] < v_l.use_need[j] then
                    v_cap[i] := 0;
                end if;
            end loop;
        end loop;
    end if;
    v_after_ats := array_fill('-infinity'::timestamptz, array[cardinality(v_c.shape_ids)]);
    v_after_ids := array_fill(0::bigint, array[cardinality(v_c.shape_ids)]);
    loop
        select * into v_q from _plan_slice(
            p_now, false, array_fill(v_chunk, array[cardinality(v_cap)]), v_c.claim_jobs, v_cap, v_after_ats, v_after_ids, v_c.head_ats, v_c.head_ids, v_c.head_counts,
            v_c.shape_ids, v_c.limits_s, v_c.uids, v_c.accounts, v_c.qos_ids, v_c.nices, v_c.tiers, v_c.orderings, v_c.depths,
            v_c.max_waits_s, v_c.backfills, v_c.sizes, v_c.fairs, v_c.statics, v_c.age_weight, v_c.max_age_s);
        exit when v_q.job_ids is null;
        -- After a class's last row, more of that class may come before the others.
        v_sure := coalesce(array_position(v_q.lasts, true), cardinality(v_q.job_ids));
        v_classes := v_classes || v_q.classes[:v_sure];  v_jobs := v_jobs || v_q.job_ids[:v_sure];
        v_counts := v_counts || v_q.counts[:v_sure];
        exit when not true = any (v_q.lasts) or cardinality(v_jobs) >= p_limit;
        for i in 1..v_sure loop
            v_after_ats[v_q.classes[i]] := v_q.queued_ats[i];  v_after_ids[v_q.classes[i]] := v_q.job_ids[i];
        end loop;
    end loop;
    return query
        select q.o::integer, q.job_id, v_c.kept_shape_ids[q.class], v_c.limits_s[q.class], v_c.uids[q.class], q.count, v_c.backfills[q.class]
          from unnest(v_jobs, v_classes, v_counts) with ordinality as q (job_id, class, count, o)
         where q.o <= p_limit and q.job_id <> all (p_without);
end;
$$;
