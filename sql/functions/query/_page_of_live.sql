-- odc._page_of_live: the query that picks a page of live jobs for odc.list_jobs.
-- Arguments  p_filters  as of odc.list_jobs
-- Returns    SQL text giving one array of cursors, in order and one more than asked; its parameters are
--            $1 the filters, $2 the cursor, $3 the limit, $4 and $5 when the cursor's job started or
--            was queued, and its nice
create or replace function odc._page_of_live(p_filters jsonb)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    -- What narrow tables answer is asked there; only a name needs the wide one.
    v_job constant text := case when p_filters ?| '{user,name,text}'
                                then 'join odc.job as j on j.id = l.job_id' else '' end;
    v_if  constant text := odc._filter_sql(p_filters, 'l.job_id', 'l.account_id', 'l.qos_id');
begin
    return format(
        $sql$
        select array(
            select u.cursor
              from (
                  (select 0 as section, 0 as nice, l.started_at as at, l.job_id, l.job_id as cursor
                     from odc.running as l %1$s
                    where ($2 is null or $2 > 0 and (l.started_at, l.job_id) > ($4, $2)) and %2$s and %3$s
                    order by l.started_at, l.job_id
                    limit $3 + 1)
                   union all
                  (select 1, l.nice, l.queued_at, l.job_id, -l.job_id
                     from odc.pending as l %1$s
                    where ($2 is null or $2 > 0 or (l.nice, l.queued_at, l.job_id) > ($5, $4, -$2)) and %2$s and %4$s
                    order by l.nice, l.queued_at, l.job_id
                    limit $3 + 1)
              ) as u
             order by u.section, u.nice, u.at, u.job_id
             limit $3 + 1)
        $sql$, v_job, v_if,
        concat_ws(' and ', 'true',
            case when p_filters ? 'state' then '$1 -> ''state'' ? l.state::text' end,
            case when p_filters ? 'partition' then
                'l.partition_id in (select t.id from odc.partition as t where $1 -> ''partition'' ? t.name)' end),
        concat_ws(' and ', 'true',
            case when p_filters ? 'state' then '$1 -> ''state'' ? ''PENDING''' end,
            case when p_filters ? 'partition' then
                'l.shape_id in (select s.id from odc.shape as s join odc.partition as t on t.id = any (s.partition_ids) '
                'where $1 -> ''partition'' ? t.name)' end));
end;
$$;
