-- odc._plan_slice: the first jobs of every class, in the order of _rank_job. Every policy's order goes through here.
-- A class needs at most p_caps rows, because its jobs are placed as a prefix of their order. At most p_chunks
-- are read; the last of them shows whether there may be more, which _plan_more reads.
-- Arguments  p_caps      per class: rows wanted; 0: none
--            p_after_*   per class: start after this row of its order
--            p_without   skip these jobs
--            p_backfill  in the order in which the policies want the candidates for backfill
--            p_only      only these jobs; null: all. p_chunks then exceeds their number
--            the others  per class, as _plan_classes returns them
-- Returns    arrays of jobs in order: class, id, queue time, how many tasks may start, rank (see _rank_job);
--            lasts: its class may have more
create or replace function odc._plan_slice(
    p_now timestamptz, p_backfill boolean, p_chunks integer[], p_without bigint[],
    p_caps integer[], p_after_ats timestamptz[], p_after_ids bigint[],
    p_head_ats timestamptz[], p_head_ids bigint[], p_head_counts integer[],
    p_shape_ids integer[], p_limits_s integer[], p_uids integer[], p_accounts integer[], p_qos_ids integer[],
    p_nices integer[], p_tiers integer[], p_orderings text[], p_depths integer[], p_max_waits_s integer[], p_backfills text[],
    p_sizes integer[], p_fairs integer[], p_statics float8[], p_age_weight integer, p_max_age_s integer, p_only bigint[] default null,
    out classes integer[], out job_ids bigint[], out queued_ats timestamptz[], out counts integer[],
    out leads bigint[], out scores float8[], out lasts boolean[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    with class as (
        select c.*
          from unnest(p_caps, p_chunks, p_after_ats, p_after_ids, p_head_ats, p_head_ids, p_head_counts, p_shape_ids, p_limits_s,
                      p_uids, p_accounts, p_qos_ids, p_nices, p_tiers, p_orderings, p_depths, p_max_waits_s, p_backfills, p_sizes,
                      p_fairs, p_statics) with ordinality as c (
               cap, chunk, after_at, after_id, head_at, head_id, head_count, shape_id, limit_s, uid, account_id, qos_id, nice,
               tier, ordering, depth, max_wait_s, backfill, size, fair, static, class)
         where c.cap > 0
    ), ranked as materialized (
        -- _plan_classes has already read the heads; a hypothetical job or one with a claim is found only there.
        select c.class, r.job_id, r.queued_at, r.open_count, c.cap > c.chunk and r.row = c.chunk as last, k.lead, k.score
          from (select k.*, ((k.head_at, k.head_id) > (k.after_at, k.after_id))::integer as fresh from class as k) as c
         cross join lateral (
               select c.head_id as job_id, c.head_at as queued_at, c.head_count as open_count, 1::bigint as row
                where c.fresh = 1 and (p_without is null or c.shape_id < 0 or c.head_id <> all (p_without))
                union all
               (select p.job_id, p.queued_at, p.open_count, row_number() over (order by p.queued_at, p.job_id) + c.fresh
                  from pending as p
                 where p_only is null and p.ready and p.shape_id = c.shape_id and p.time_limit_s = c.limit_s and p.uid = c.uid
                   and p.account_id = c.account_id and p.qos_id = c.qos_id and p.nice = c.nice
                   and (p_without is null or p.job_id <> all (p_without))
                   and (p.queued_at, p.job_id) > (case when c.fresh = 1 then c.head_at else c.after_at end,
                                                  case when c.fresh = 1 then c.head_id else c.after_id end)
                 order by p.queued_at, p.job_id
                 limit least(c.cap, c.chunk) - c.fresh)
                union all
               (select p.job_id, p.queued_at, p.open_count, 0
                  from unnest(p_only) as o (job_id)
                  join pending as p on p.job_id = o.job_id
                 where p_only is not null and p.ready and p.shape_id = c.shape_id and p.time_limit_s = c.limit_s and p.uid = c.uid
                   and p.account_id = c.account_id and p.qos_id = c.qos_id and p.nice = c.nice
                   and (p_without is null or p.job_id <> all (p_without))
                   and (p.queued_at, p.job_id) > (case when c.fresh = 1 then c.head_at else c.after_at end,
                                                  case when c.fresh = 1 then c.head_id else c.after_id end))) as r
          left join planned as d on c.ordering = 'fifo' and c.depth > 1 and d.job_id = r.job_id
         cross join lateral _rank_job(
                   p_now, p_backfill, r.queued_at, coalesce(d.planned_start_at, 'infinity'), c.tier, c.nice, c.ordering,
                   c.depth, c.max_wait_s, c.backfill, c.limit_s, c.size, c.fair, c.static, p_age_weight, p_max_age_s) as k
    )
    select array_agg(o.class::integer), array_agg(o.job_id), array_agg(o.queued_at), array_agg(o.open_count),
           array_agg(o.lead), array_agg(o.score), array_agg(o.last)
      into classes, job_ids, queued_ats, counts, leads, scores, lasts
      from (select * from ranked as r order by r.lead, r.score desc, r.queued_at, r.job_id) as o;
end;
$$;
