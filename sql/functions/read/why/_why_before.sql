-- odc._why_before: the jobs ahead of a pending job in the order of the queue that could be in its way.
-- Each class is read in its order up to the job, so the cost depends on the classes and the jobs found.
-- Arguments  p_without  skip these
--            p_most     if there are more, reading stops soon after this many
-- Returns    their ids; an array is one
create or replace function odc._why_before(p_job_id bigint, p_now timestamptz, p_without bigint[], p_most integer)
returns bigint[]
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_all     constant integer := 1000000;
    c         record;           -- _plan_classes
    q         record;           -- _plan_slice
    v_job     pending;
    v_without bigint[];
    v_classes integer;
    v_class   integer;          -- the job's own
    v_rivals  integer[];
    v_caps    integer[];  v_after_ats timestamptz[];  v_after_ids bigint[];
    v_chunk   integer := 1;     -- number of rows read of a class at once; the first row is already known
    v_lead    bigint;  v_score float8;
    v_from    integer;  v_to integer;  i integer;
    v_before  bigint[] := '{}';
begin
    select * into strict v_job from pending where job_id = p_job_id;
    select * into c from _plan_classes(p_now, null, p_without, null);
    v_classes := cardinality(c.shape_ids);
    v_without := coalesce(p_without, '{}') || c.claim_jobs;
    v_rivals := _why_rivals(p_job_id, c.kept_shape_ids);
    -- A job that claims nodes is a class of its own.
    select u.ord into strict v_class
      from unnest(c.kept_shape_ids, c.limits_s, c.uids, c.accounts, c.qos_ids, c.nices, c.head_ids, c.shape_ids) with ordinality
           as u (shape_id, limit_s, uid, account_id, qos_id, nice, head_id, as_shape_id, ord)
     where (u.shape_id, u.limit_s, u.uid, u.account_id, u.qos_id, u.nice)
         = (v_job.shape_id, v_job.time_limit_s, v_job.uid, v_job.account_id, v_job.qos_id, v_job.nice)
       and (u.as_shape_id > -1000000) = (p_job_id = any (c.claim_jobs)) is not true
       and (u.as_shape_id > -1000000 or u.head_id = p_job_id);

    select k.lead, k.score into strict v_lead, v_score
      from (select 1) as one
      left join planned as d on c.orderings[v_class] = 'fifo' and c.depths[v_class] > 1 and d.job_id = p_job_id
     cross join lateral _rank_job(
               p_now, false, v_job.queued_at, coalesce(d.planned_start_at, 'infinity'), c.tiers[v_class], v_job.nice,
               c.orderings[v_class], c.depths[v_class], c.max_waits_s[v_class], c.backfills[v_class], v_job.time_limit_s,
               c.sizes[v_class], c.fairs[v_class], c.statics[v_class], c.age_weight, c.max_age_s) as k;
    select array_agg(case when u.shape_id = any (v_rivals) then v_all else 0 end order by u.ord) into v_caps
      from unnest(c.kept_shape_ids) with ordinality as u (shape_id, ord);
    v_after_ats := array_fill('-infinity'::timestamptz, array[v_classes]);
    v_after_ids := array_fill(0::bigint, array[v_classes]);
    loop
        select * into q from _plan_slice(
            p_now, false, array_fill(v_chunk, array[v_classes]), v_without, v_caps, v_after_ats, v_after_ids,
            c.head_ats, c.head_ids, c.head_counts, c.shape_ids, c.limits_s, c.uids, c.accounts, c.qos_ids, c.nices, c.tiers,
            c.orderings, c.depths, c.max_waits_s, c.backfills, c.sizes, c.fairs, c.statics, c.age_weight, c.max_age_s);
        -- They are sorted: find its place among them by binary search.
        v_from := 0;  v_to := coalesce(cardinality(q.job_ids), 0) + 1;
        while v_to - v_from > 1 loop
            i := (v_from + v_to) / 2;
            if _goes_before(q.leads[i], q.scores[i], q.queued_ats[i], q.job_ids[i], v_lead, v_score, v_job.queued_at, p_job_id) then
                v_from := i;
            else
                v_to := i;
            end if;
        end loop;
        v_before := v_before || q.job_ids[:v_from];
        v_caps := array_fill(0, array[v_classes]);
        for i in select o from unnest(q.lasts[:v_from]) with ordinality as u (last, o) where last loop
            v_class := q.classes[i];
            v_caps[v_class] := v_all;  v_after_ats[v_class] := q.queued_ats[i];  v_after_ids[v_class] := q.job_ids[i];
        end loop;
        exit when cardinality(v_before) > p_most or not v_all = any (v_caps);
        v_chunk := v_chunk * 4;
    end loop;
    return v_before;
end;
$$;
