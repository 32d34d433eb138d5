-- odc.list_jobs: a page of jobs for the API.
-- Arguments  p_filters  all optional, all must match: ids [{job_id, tasks}], job_ids [], user (one or []),
--                       name [], partition [], account [], qos [], state [], ended_since, ended_before,
--                       text (in a name, a user's name or a comment)
--            p_ended    false: live jobs, running ones by start, then pending ones in the planner's order;
--                       true: all jobs, newest id first; if the filters select only ended jobs, last ended first
--            p_after    the cursor of the page before: for all jobs an id; for live jobs the id of a running
--                       job, or of a pending one negated. A job whose state changed since keeps its place
--            p_limit    maximum number of jobs; an answer ends earlier if their texts have more than 16 MiB
--            p_fields   the keys wanted; null: all
--            p_now      earlier planned starts are shown as p_now
-- Returns    one row: the jobs as a JSON array, and the cursor of the next page or null
-- Raises     OD010 BadRequest: an unknown field; OD001, OD002, OD004: a partition, account or QOS that does not exist
create or replace function odc.list_jobs(
    p_filters jsonb, p_ended boolean, p_after bigint, p_limit integer, p_fields text[], p_now timestamptz)
returns table (jobs text, next bigint)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_from constant record := odc._live_cursor(case when not p_ended then p_after end);
    v_ids  bigint[];    -- one more than requested, to find out whether there is a next page
    v_over boolean;     -- only ended jobs are requested
begin
    if p_filters ?| '{partition,account,qos}' then
        perform _check_names(p_filters);
    end if;
    if p_filters ? 'user' then
        p_filters := jsonb_set(p_filters, '{user}', to_jsonb(_known_as(_words(p_filters -> 'user'))));
    end if;
    if p_ended and p_filters ?| '{ended_since,ended_before}' and not p_filters ? 'state' then
        p_filters := p_filters || jsonb_build_object('state', odc._end_states());
    end if;
    v_over := p_ended and not p_filters ?| '{ids,job_ids}' and p_filters ? 'state'
              and odc._words(p_filters -> 'state') <@ odc._end_states();
    execute case when v_over then odc._page_of_ended(p_filters)
                 when p_ended then odc._page_of_all(p_filters) else odc._page_of_live(p_filters) end
       into v_ids
      using p_filters, p_after, p_limit, v_from.at, v_from.nice;
    if p_fields is null or p_fields && '{name,work_dir,comment,dependency,stdout,stderr,components}' then
        p_limit := least(p_limit, odc._rows_that_fit(v_ids[1:p_limit], 16 * 1024 * 1024));
    end if;
    jobs := odc._render_jobs(array(select abs(i) from unnest(v_ids[1:p_limit]) as i),
                             case when v_over then 'given' when p_ended then 'newest' else 'live' end, p_fields, p_now);
    next := case when cardinality(v_ids) > p_limit then v_ids[p_limit] end;
    return next;
end;
$$;
