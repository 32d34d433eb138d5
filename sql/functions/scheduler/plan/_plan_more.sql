-- odc._plan_more: the next rows of one class, ranked as _plan_slice ranks them.
-- Arguments  p_count  maximum number of rows;  the others as of _plan_slice, for this class
create or replace function odc._plan_more(
    p_now timestamptz, p_backfill boolean, p_count integer, p_without bigint[],
    p_after_at timestamptz, p_after_id bigint,
    p_shape_id integer, p_limit_s integer, p_uid integer, p_account integer, p_qos_id integer,
    p_nice integer, p_tier integer, p_ordering text, p_depth integer, p_max_wait_s integer, p_backfill_order text,
    p_size integer, p_fair integer, p_static float8, p_age_weight integer, p_max_age_s integer,
    out job_ids bigint[], out queued_ats timestamptz[], out counts integer[], out leads bigint[], out scores float8[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    select array_agg(r.job_id order by r.queued_at, r.job_id), array_agg(r.queued_at order by r.queued_at, r.job_id),
           array_agg(r.open_count order by r.queued_at, r.job_id), array_agg(k.lead order by r.queued_at, r.job_id),
           array_agg(k.score order by r.queued_at, r.job_id)
      into job_ids, queued_ats, counts, leads, scores
      from (select p.job_id, p.queued_at, p.open_count
              from pending as p
             where p.ready and p.shape_id = p_shape_id and p.time_limit_s = p_limit_s and p.uid = p_uid
               and p.account_id = p_account and p.qos_id = p_qos_id and p.nice = p_nice
               and (p_without is null or p.job_id <> all (p_without))
               and (p.queued_at, p.job_id) > (p_after_at, p_after_id)
             order by p.queued_at, p.job_id
             limit p_count) as r
      left join planned as d on p_ordering = 'fifo' and p_depth > 1 and d.job_id = r.job_id
     cross join lateral _rank_job(
               p_now, p_backfill, r.queued_at, coalesce(d.planned_start_at, 'infinity'), p_tier, p_nice, p_ordering,
               p_depth, p_max_wait_s, p_backfill_order, p_limit_s, p_size, p_fair, p_static, p_age_weight,
               p_max_age_s) as k;
end;
$$;
