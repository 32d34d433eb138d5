-- odc.take_stops: running attempts that the database wants ended and whose executor has not been told,
-- or not within a minute; marks them told.
-- Arguments  p_again  tell of all: a new leader cannot know what its predecessor got sent
-- Returns    grace_s: what is left of the grace that the QOS of a preempted job gives it; null: the usual one
create or replace function odc.take_stops(p_term bigint, p_now timestamptz, p_again boolean default false)
returns table (job_id bigint, attempt integer, intent text, grace_s double precision)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    return query
    with told as (
        update running as r set stop_sent_at = case when p_again then coalesce(r.stop_sent_at, p_now) else p_now end
         where r.intent is not null
           and (p_again or r.stop_sent_at is null or r.stop_sent_at < p_now - interval '60 seconds')
        returning r.job_id, r.attempt, r.intent::text,
                  case when r.intent = 'preempt' and r.kill_at > r.intent_at
                       then greatest(0, extract(epoch from r.kill_at - p_now))::double precision end
    )
    select * from told as t order by t.job_id;
end;
$$;
