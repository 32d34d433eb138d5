-- odc._rank_job: a pending job's place in the order: the lower lead first, then the higher score; ties are broken by
-- queue time and id. Inlined.
-- lead: the partition's tier; then whether it waited longer than the policy's max_wait_s; then nice.
-- score: the policy's formula. First come, first served with several protected jobs sorts by the starts already planned:
-- planning again in queue order could move one job into another's place and break a promise without cause.
-- Candidates for backfill have their own order.
create or replace function odc._rank_job(
    p_now timestamptz, p_backfill boolean, p_queued_at timestamptz, p_promised_at timestamptz,
    p_tier integer, p_nice integer, p_ordering text, p_depth integer, p_max_wait_s integer, p_backfill_order text,
    p_limit_s integer, p_size integer, p_fair integer, p_static float8, p_age_weight integer, p_max_age_s integer)
returns table (lead bigint, score float8)
language sql stable as $$
    select (65535 - p_tier) * 17179869184
               + case when f.front then 0 else 8589934592 end
               + case when p_ordering = 'multifactor' then 0 else p_nice end + 2147483648,
           case when p_backfill then case p_backfill_order when 'sjbf' then -p_limit_s
                                                           when 'safbf' then -p_limit_s::float8 * p_size else 0 end
                when f.front then 0
                when p_ordering = 'fifo' then
                    case when p_depth > 1 then -least(date_part('epoch', p_promised_at), 1e15) else 0 end
                else _score_class(p_ordering, f.wait_s, p_limit_s, p_size, p_fair, p_static, p_age_weight, p_max_age_s) end
      from (select w.wait_s, coalesce(w.wait_s > p_max_wait_s, false) and not p_backfill as front
              from (select greatest(0, date_part('epoch', p_now - p_queued_at)) as wait_s) as w) as f
$$;
