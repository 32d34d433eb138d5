-- odc.list_queue: a page of live jobs in the order in which the queue will start them: running jobs by start; then those
-- with a position at the last refresh of the expected starts, by position; then those without one: they are newer,
-- lack something, or are behind the last position that a refresh computes.
-- Arguments  p_filters  as in odc.list_jobs
--            p_place    the last position on the page before: only higher ones follow; null: from the first on
--            p_after    if that page ended with a job without a position, its cursor as in odc.list_jobs: the id of a
--                       running job, or of a pending one negated; null with p_place
--            p_limit    maximum number of jobs
--            p_fields   the keys wanted; null: all
--            p_now      earlier planned starts are shown as p_now
-- Returns    one row: the jobs as a JSON array; the position of each, or null; and where the next page starts (both
--            null: there is none)
-- Raises     OD010 BadRequest: an unknown field; OD001, OD002, OD004: a partition, account or QOS that does not exist
create or replace function odc.list_queue(
    p_filters jsonb, p_place integer, p_after bigint, p_limit integer, p_fields text[], p_now timestamptz)
returns table (jobs text, places integer[], next_place integer, next bigint)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_at   record := odc._live_cursor(p_after);
    v_if   record;
    v_ids  bigint[];    -- one more than requested, to find out whether there is a next page
    v_sections integer[];
begin
    if p_filters ?| '{partition,account,qos}' then
        perform _check_names(p_filters);
    end if;
    if p_filters ? 'user' then
        p_filters := jsonb_set(p_filters, '{user}', to_jsonb(_known_as(_words(p_filters -> 'user'))));
    end if;
    v_if := odc._live_filters(p_filters);
    execute format(
        $sql$
        select array_agg(u.job_id order by u.section, u.place, u.nice, u.at, u.job_id),
               array_agg(u.place order by u.section, u.place, u.nice, u.at, u.job_id),
               array_agg(u.section order by u.section, u.place, u.nice, u.at, u.job_id)
          from (
              (select 0 as section, null::integer as place, 0 as nice, l.started_at as at, l.job_id
                 from odc.running as l %1$s
                where $2 is null and ($3 is null or $3 > 0 and (l.started_at, l.job_id) > ($5, $3)) and %2$s
                order by l.started_at, l.job_id
                limit $4 + 1)
               union all
              (select 1, e.place, 0, null, l.job_id
                 from odc.eta as e
                 join odc.pending as l on l.job_id = e.job_id %1$s
                where ($3 is null or $3 > 0) and ($2 is null or e.place > $2) and %3$s
                order by e.place, l.job_id
                limit $4 + 1)
               union all
              (select 2, null, l.nice, l.queued_at, l.job_id
                 from odc.pending as l %1$s
                where not exists (select from odc.eta as e where e.job_id = l.job_id)
                  and ($3 is null or $3 > 0 or (l.nice, l.queued_at, l.job_id) > ($6, $5, -$3)) and %3$s
                order by l.nice, l.queued_at, l.job_id
                limit $4 + 1)
          ) as u
        $sql$, v_if.joined, v_if.running, v_if.pending)
       into v_ids, places, v_sections
      using p_filters, p_place, p_after, p_limit, v_at.at, v_at.nice;
    jobs := odc._render_jobs(v_ids[:p_limit], 'given', p_fields, p_now);
    if cardinality(v_ids) > p_limit then
        next_place := places[p_limit];
        next := case v_sections[p_limit] when 0 then v_ids[p_limit] when 2 then -v_ids[p_limit] end;
    end if;
    -- Jobs behind all positions lack something; their future position is unknown.
    places := array(select nullif(least(p, 1000000), 1000000) from unnest(places[:p_limit]) with ordinality as u (p, n) order by u.n);
    return next;
end;
$$;
