-- odc._render_jobs: jobs as the JSON array of the API.
-- Arguments  p_ids     the jobs; ids that are not (or no longer) jobs are left out
--            p_order   'live': running jobs by start, then pending ones in the planner's order;
--                      'newest': highest id first; 'oldest'; 'given': as in p_ids
--            p_fields  the keys wanted; null: all
--            p_now     an earlier planned start is shown as p_now
-- Raises     OD010 BadRequest: an unknown field
create or replace function odc._render_jobs(p_ids bigint[], p_order text, p_fields text[], p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_running constant bigint[] := array(select job_id from running where job_id = any (p_ids));
    v_pending constant bigint[] := array(select job_id from pending where job_id = any (p_ids));
    v_columns constant text := odc._job_columns(p_fields);
    v_from    text;
    v_jobs    text;
begin
    -- Only the views that have rows to return are planned: planning is most of the cost of a short list.
    v_from := concat_ws(' union all ',
        case when v_running <> '{}' then 'select 0 as section, w.* from odc.running_job as w where w.id = any ($2)' end,
        case when v_pending <> '{}' then 'select 1 as section, w.* from odc.pending_job as w where w.id = any ($3)' end,
        case when cardinality(v_running) + cardinality(v_pending) < cardinality(p_ids)
             then 'select 2 as section, w.* from odc.ended_job as w where w.id = any ($4)' end);
    if v_from = '' then
        return '[]';
    end if;
    execute format(
        'select string_agg(row_to_json(x)::text, '','') from (select %s from (%s) as v order by %s) as x',
        v_columns, v_from,
        case p_order when 'live' then 'v.section, case v.section when 1 then v.nice end, coalesce(v.started_at, v.queued_at), v.id'
                     when 'newest' then 'v.id desc'
                     when 'given' then 'array_position($4, v.id)'
                     else 'v.id' end)
       into v_jobs
      using p_now, v_running, v_pending, p_ids;
    return '[' || coalesce(v_jobs, '') || ']';
end;
$$;
