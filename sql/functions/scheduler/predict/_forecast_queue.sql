-- odc._forecast_queue: the first jobs of the queue in the order of their policies. The forecast reads the queue only
-- here. The classes' heads are merged as in a pass, slice by slice, until there are enough: a further slice has, of each
-- class, as many jobs as may still be among them. Classes are left out that
-- are over a limit of which no job gives anything back: a limit per job, or on GPU-minutes. Their start is not in sight.
-- Arguments  p_count    number of jobs
--            p_without  leave these out; places are counted with them
create or replace function odc._forecast_queue(p_now timestamptz, p_count integer, p_without bigint[] default '{}')
returns table (place integer, job_id bigint, shape_id integer, time_limit_s integer, uid integer, account_id integer, qos_id integer,
               tasks integer, backfill text)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_class record;             -- _plan_classes
    v_limit record;             -- _plan_buckets
    v_slice record;             -- _plan_slice
    v_chunks integer[];  v_read integer[];  v_more integer;  v_cap integer[];  v_after_ats timestamptz[];  v_after_ids bigint[];
    v_classes integer[];  v_jobs bigint[];  v_counts integer[];
    i integer;  j integer;  v_sure integer;
begin
    select * into v_class from _plan_classes(p_now, null, null, null);
    if v_class.shape_ids is null then
        return;
    end if;
    v_chunks := array_fill(greatest(16, 2 * p_count / cardinality(v_class.shape_ids)), array[cardinality(v_class.shape_ids)]);
    v_cap := array_fill(p_count, array[cardinality(v_class.shape_ids)]);
    select * into v_limit from _plan_buckets(
        p_now, v_class.kept_shape_ids, v_class.limits_s, v_class.uids, v_class.accounts, v_class.qos_ids);
    if v_limit.use_from is not null then
        for i in 1..cardinality(v_cap) loop
            for j in v_limit.use_from[i]..v_limit.use_to[i] loop
                if v_limit.left[v_limit.use_bucket[j]] < v_limit.use_need[j]
                   and not (v_limit.consumes[v_limit.use_bucket[j]] and v_limit.whats[v_limit.use_bucket[j]] <> 'gpu_minutes') then
                    v_cap[i] := 0;
                end if;
            end loop;
        end loop;
    end if;
    v_after_ats := array_fill('-infinity'::timestamptz, array[cardinality(v_class.shape_ids)]);
    v_after_ids := array_fill(0::bigint, array[cardinality(v_class.shape_ids)]);
    loop
        select * into v_slice from _plan_slice(
            p_now, false, v_chunks, v_class.claim_jobs, v_cap, v_after_ats, v_after_ids,
            v_class.head_ats, v_class.head_ids, v_class.head_counts, v_class.shape_ids, v_class.limits_s, v_class.uids,
            v_class.accounts, v_class.qos_ids, v_class.nices, v_class.tiers, v_class.orderings, v_class.depths,
            v_class.max_waits_s, v_class.backfills, v_class.sizes, v_class.fairs, v_class.statics, v_class.age_weight,
            v_class.max_age_s);
        exit when v_slice.job_ids is null;
        -- After a class's last row, more of that class may come before the others.
        v_sure := coalesce(array_position(v_slice.lasts, true), cardinality(v_slice.job_ids));
        v_more := p_count - coalesce(cardinality(v_jobs), 0);
        v_classes := v_classes || v_slice.classes[:v_sure];  v_jobs := v_jobs || v_slice.job_ids[:v_sure];
        v_counts := v_counts || v_slice.counts[:v_sure];
        exit when not true = any (v_slice.lasts) or cardinality(v_jobs) >= p_count;
        for i in 1..v_sure loop
            v_after_ats[v_slice.classes[i]] := v_slice.queued_ats[i];  v_after_ids[v_slice.classes[i]] := v_slice.job_ids[i];
        end loop;
        v_read := v_chunks;  v_chunks := array_fill(1, array[cardinality(v_cap)]);
        for i in 1..least(v_more, cardinality(v_slice.job_ids)) loop
            if v_slice.lasts[i] then
                v_chunks[v_slice.classes[i]] := 4 * v_read[v_slice.classes[i]];
            elsif i > v_sure then
                v_chunks[v_slice.classes[i]] := v_chunks[v_slice.classes[i]] + 1;
            end if;
        end loop;
    end loop;
    return query
        select q.o::integer, q.job_id, v_class.kept_shape_ids[q.class], v_class.limits_s[q.class], v_class.uids[q.class], v_class.accounts[q.class],
               v_class.qos_ids[q.class], q.count,
               v_class.backfills[q.class]
          from unnest(v_jobs, v_classes, v_counts) with ordinality as q (job_id, class, count, o)
         where q.o <= p_count and q.job_id <> all (p_without);
end;
$$;
