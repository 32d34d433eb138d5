-- odc._plan_slice: the next jobs in order, merged from the heads of the classes; the seam where an order goes.
-- Order: the partition's tier; who waited longer than the policy's max_wait_s; nice; score; queue time; id. First come,
-- first served, with several protected jobs, goes by the starts already planned: planning anew in queue order could
-- move one job into another's place, and a promise would slip though nothing happened to it.
-- Of a class at most p_caps rows are needed, because its jobs are placed as a prefix of their order; at most p_chunks
-- are read at once. Where that is fewer, the slice ends at the first such class's last row, so that no job is
-- passed over.
-- Arguments  p_caps      per class: rows wanted; 0: none
--            p_after_*   per class: behind this row of its order
--            p_without   leave these jobs out
--            p_backfill  in the order in which the policies want the candidates for backfill
--            the others  per class, as _plan_classes returns them
-- Returns    arrays of jobs in order: class, id, queue time, how many tasks may start;
--            cut: there is more behind the last
create or replace function odc._plan_slice(
    p_now timestamptz, p_backfill boolean, p_chunks integer[], p_without bigint[],
    p_caps integer[], p_after_ats timestamptz[], p_after_ids bigint[],
    p_head_ats timestamptz[], p_head_ids bigint[], p_head_counts integer[],
    p_shape_ids integer[], p_limits_s integer[], p_uids integer[], p_accounts integer[], p_qos_ids integer[],
    p_nices integer[], p_tiers integer[], p_orderings text[], p_depths integer[], p_max_waits_s integer[], p_backfills text[],
    p_sizes integer[], p_fairs integer[], p_statics float8[], p_age_weight integer, p_max_age_s integer,
    out classes integer[], out job_ids bigint[], out queued_ats timestamptz[], out counts integer[], out cut boolean)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    with class as (
        select c.*, case when c.ordering = 'multifactor' then 0 else c.nice end as back
          from unnest(p_caps, p_chunks, p_after_ats, p_after_ids, p_head_ats, p_head_ids, p_head_counts, p_shape_ids, p_limits_s,
                      p_uids, p_accounts, p_qos_ids, p_nices, p_tiers, p_orderings, p_depths, p_max_waits_s, p_backfills, p_sizes,
                      p_fairs, p_statics) with ordinality as c (
               cap, chunk, after_at, after_id, head_at, head_id, head_count, shape_id, limit_s, uid, account_id, qos_id, nice,
               tier, ordering, depth, max_wait_s, backfill, size, fair, static, class)
         where c.cap > 0
    ), found as (
        -- The heads were read by _plan_classes already; a hypothetical job is nowhere else.
        select c.class, c.head_id as job_id, c.head_at as queued_at, c.head_count as open_count, 1::bigint as row
          from class as c
         where (c.head_at, c.head_id) > (c.after_at, c.after_id) and (p_without is null or c.head_id <> all (p_without))
         union all
        select c.class, r.job_id, r.queued_at, r.open_count, r.row + c.fresh
          from (select k.*, ((k.head_at, k.head_id) > (k.after_at, k.after_id))::integer as fresh from class as k) as c
         cross join lateral (
               select p.job_id, p.queued_at, p.open_count, row_number() over (order by p.queued_at, p.job_id) as row
                 from pending as p
                where p.ready and p.shape_id = c.shape_id and p.time_limit_s = c.limit_s and p.uid = c.uid
                  and (p_without is null or p.job_id <> all (p_without)) and p.account_id = c.account_id and p.qos_id = c.qos_id and p.nice = c.nice
                  and (p.queued_at, p.job_id) > (case when c.fresh = 1 then c.head_at else c.after_at end,
                                                 case when c.fresh = 1 then c.head_id else c.after_id end)
                order by p.queued_at, p.job_id
                limit least(c.cap, c.chunk) - c.fresh) as r
         where least(c.cap, c.chunk) > c.fresh
    ), waiting as materialized (
        select f.*, c.tier, c.back, c.ordering, c.backfill, c.limit_s, c.size, c.fair, c.static, c.cap, c.chunk, c.max_wait_s,
               coalesce(d.planned_start_at, 'infinity') as promised,
               greatest(0, date_part('epoch', p_now - f.queued_at)) as wait_s
          from found as f
          join class as c on c.class = f.class
          left join planned as d on c.ordering = 'fifo' and c.depth > 1 and d.job_id = f.job_id
    ), scored as materialized (
        select w.*, w.cap > w.chunk and w.row = w.chunk as last,
               coalesce(w.wait_s > w.max_wait_s, false) and not p_backfill as front,
               case when not p_backfill then _score_class(
                        w.ordering, w.wait_s, w.limit_s, w.size, w.fair, w.static, p_age_weight, p_max_age_s)
                    when w.backfill = 'sjbf' then -w.limit_s
                    when w.backfill = 'safbf' then -w.limit_s::float8 * w.size
                    else 0 end as score
          from waiting as w
    ), ordered as (
        select s.*, row_number() over (
                   order by s.tier desc, s.front desc, s.back, s.promised,
                            case when s.front then 0 else s.score end desc, s.queued_at, s.job_id) as place
          from scored as s
    )
    select array_agg(o.class::integer order by o.place), array_agg(o.job_id order by o.place),
           array_agg(o.queued_at order by o.place), array_agg(o.open_count order by o.place),
           coalesce((select true from ordered where last limit 1), false)
      into classes, job_ids, queued_ats, counts, cut
      from ordered as o
     where o.place <= (select coalesce(min(place), 9223372036854775807) from ordered where last);
end;
$$;
