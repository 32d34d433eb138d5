-- odc._page_of_all: the query that picks a page of all jobs, newest first, for odc.list_jobs.
-- Arguments  p_filters  as in odc.list_jobs
-- Returns    SQL text returning one array of ids, one more than requested; parameters as in odc._page_of_live
create or replace function odc._page_of_all(p_filters jsonb)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    return format(
        $sql$
        select array(
            select j.id
              from odc.job as j
              left join odc.running as r on r.job_id = j.id
             where ($2 is null or j.id < $2) and %s
             order by j.id desc
             limit $3 + 1)
        $sql$,
        concat_ws(' and ',
            odc._filter_sql(p_filters, 'j.id', 'j.account_id', 'j.qos_id'),
            case when p_filters ? 'state' then
                '$1 -> ''state'' ? coalesce(j.state::text, r.state::text, ''PENDING'')' end,
            case when p_filters ? 'partition' then
                'exists (select from odc.partition as t where $1 -> ''partition'' ? t.name '
                'and (t.id = coalesce(r.partition_id, j.partition_id) '
                'or coalesce(r.partition_id, j.partition_id) is null and t.id = any (j.partition_ids)))' end));
end;
$$;
