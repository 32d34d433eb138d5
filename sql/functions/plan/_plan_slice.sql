-- odc._plan_slice: the next jobs of the queue, in order; the seam where an order policy goes.
-- First come, first served: by (nice, queued_at, job_id). For each entry (a shape, and the time limits above
-- p_lows up to p_highs) at most p_caps rows behind the position (p_nice, p_queued_at, p_job_id) are needed, because
-- jobs of one entry are placed as a prefix of their order; at most p_chunk are read. Where that is fewer, the slice
-- ends at the first such entry's last row, so that no job is passed over.
-- Returns    arrays of jobs in order: id, shape number, time limit, how many tasks may start, and their place in the
--            order; cut: there is more behind the last
create or replace function odc._plan_slice(
    p_shapes integer[], p_shape_ids integer[], p_lows integer[], p_highs integer[], p_caps integer[],
    p_nice integer, p_queued_at timestamptz, p_job_id bigint, p_chunk integer,
    out job_ids bigint[], out shapes integer[], out limits_s integer[], out counts integer[],
    out nices integer[], out queued_ats timestamptz[], out cut boolean)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    with slice as materialized (
        select r.job_id, e.shape, r.time_limit_s, r.open_count, r.nice, r.queued_at,
               e.cap > p_chunk and row_number() over (partition by e.entry order by r.nice, r.queued_at, r.job_id) = p_chunk
                   as last
          from unnest(p_shapes, p_shape_ids, p_lows, p_highs, p_caps) with ordinality
               as e (shape, shape_id, low, high, cap, entry)
         cross join lateral (
               select p.job_id, p.time_limit_s, p.open_count, p.nice, p.queued_at
                 from pending as p
                where p.ready and p.shape_id = e.shape_id
                  and p.time_limit_s > e.low and p.time_limit_s <= e.high
                  and (p.nice, p.queued_at, p.job_id) > (p_nice, p_queued_at, p_job_id)
                order by p.nice, p.queued_at, p.job_id
                limit least(e.cap, p_chunk)) as r
    ), safe as (
        select s.nice, s.queued_at, s.job_id from slice as s where s.last
         order by s.nice, s.queued_at, s.job_id limit 1
    ), ordered as (
        select s.* from slice as s
         where not exists (select from safe)
            or (s.nice, s.queued_at, s.job_id) <= (select f.nice, f.queued_at, f.job_id from safe as f)
         order by s.nice, s.queued_at, s.job_id
    )
    select array_agg(z.job_id), array_agg(z.shape), array_agg(z.time_limit_s), array_agg(z.open_count),
           array_agg(z.nice), array_agg(z.queued_at), exists (select from safe)
      into job_ids, shapes, limits_s, counts, nices, queued_ats, cut
      from ordered as z;
end;
$$;
