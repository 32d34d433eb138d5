-- odc.take_stops: running attempts that the database wants ended and whose executor has not been told,
-- or not within a minute; marks them told.
create or replace function odc.take_stops(p_term bigint, p_now timestamptz)
returns table (job_id bigint, attempt integer, intent text)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    return query
    update running as r set stop_sent_at = p_now
     where r.intent is not null
       and (r.stop_sent_at is null or r.stop_sent_at < p_now - interval '60 seconds')
    returning r.job_id, r.attempt, r.intent::text;
end;
$$;
