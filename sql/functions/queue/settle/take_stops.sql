-- odc.take_stops: running attempts to end whose executor has received no stop, or none within the last minute;
-- records that the stop is sent now.
-- Arguments  p_again  return all of them: a new leader does not know which stops its predecessor delivered
-- Returns    grace_s: what is left of the grace period of a preempted job's QOS; null: the executor's usual one
create or replace function odc.take_stops(p_term bigint, p_now timestamptz, p_again boolean default false)
returns table (job_id bigint, attempt integer, intent text, grace_s double precision)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    return query
    with due as (
        update running as r set stop_sent_at = case when p_again then coalesce(r.stop_sent_at, p_now) else p_now end
         where r.intent is not null
           and (p_again or r.stop_sent_at is null or r.stop_sent_at < p_now - interval '60 seconds')
        returning r.job_id, r.attempt, r.intent::text,
                  case when r.intent = 'preempt' and r.kill_at > r.intent_at
                       then greatest(0, extract(epoch from r.kill_at - p_now))::double precision end
    )
    select * from due as t order by t.job_id;
end;
$$;
