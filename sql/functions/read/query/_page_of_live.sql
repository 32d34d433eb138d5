-- odc._page_of_live: the query that picks a page of live jobs for odc.list_jobs.
-- Arguments  p_filters  as in odc.list_jobs
-- Returns    SQL text returning one array of cursors, in order and one more than requested; its parameters are
--            $1 the filters, $2 the cursor, $3 the limit, $4 and $5 when the cursor's job started or
--            was queued, and its nice
create or replace function odc._page_of_live(p_filters jsonb)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_if constant record := odc._live_filters(p_filters);
begin
    return format(
        $sql$
        select array(
            select u.cursor
              from (
                  (select 0 as section, 0 as nice, l.started_at as at, l.job_id, l.job_id as cursor
                     from odc.running as l %1$s
                    where ($2 is null or $2 > 0 and (l.started_at, l.job_id) > ($4, $2)) and %2$s
                    order by l.started_at, l.job_id
                    limit $3 + 1)
                   union all
                  (select 1, l.nice, l.queued_at, l.job_id, -l.job_id
                     from odc.pending as l %1$s
                    where ($2 is null or $2 > 0 or (l.nice, l.queued_at, l.job_id) > ($5, $4, -$2)) and %3$s
                    order by l.nice, l.queued_at, l.job_id
                    limit $3 + 1)
              ) as u
             order by u.section, u.nice, u.at, u.job_id
             limit $3 + 1)
        $sql$, v_if.joined, v_if.running, v_if.pending);
end;
$$;
