-- odc._page_of_ended: the query that picks a page of ended jobs, last ended first, for odc.list_jobs.
-- It reads one index range per user, or per state if no user is given, so it reads only the page and the rows that the
-- other filters skip.
-- Arguments  p_filters  as in odc.list_jobs; state is present
-- Returns    SQL text returning one array of ids, one more than requested, in order; parameters as in
--            odc._page_of_live. The cursor is the id of a job: the page begins after its end
create or replace function odc._page_of_ended(p_filters jsonb)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_by constant text := case when p_filters ? 'user' then 'user' else 'state' end;
begin
    return format(
        $sql$
        select array(
            select e.id
              from (select distinct by_key from jsonb_array_elements_text(
                        case jsonb_typeof($1 -> %1$L) when 'array' then $1 -> %1$L else jsonb_build_array($1 -> %1$L) end)
                        as t (by_key)) as k
             cross join lateral (
                   select j.id, j.ended_at
                     from odc.job as j
                    where %2$s and j.state is not null
                      -- A job that retention has deleted has no end: all jobs after it in this order were deleted before it.
                      and (j.ended_at, j.id) < (case when $2 is null then 'infinity'::timestamptz
                                                     else (select c.ended_at from odc.job as c where c.id = $2) end,
                                                coalesce($2, 9223372036854775807))
                      and %3$s
                    order by j.ended_at desc, j.id desc
                    limit $3 + 1) as e
             order by e.ended_at desc, e.id desc
             limit $3 + 1)
        $sql$,
        v_by,
        case v_by when 'user' then 'j.user_name = k.by_key' else 'j.state = k.by_key::odc.job_state' end,
        concat_ws(' and ',
            odc._filter_sql(p_filters - v_by, 'j.id', 'j.account_id', 'j.qos_id'),
            case when v_by = 'user' then '$1 -> ''state'' ? j.state::text' end,
            case when p_filters ? 'partition' then
                'exists (select from odc.partition as t where $1 -> ''partition'' ? t.name '
                'and (t.id = j.partition_id or j.partition_id is null and t.id = any (j.partition_ids)))' end));
end;
$$;
