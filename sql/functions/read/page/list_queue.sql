-- odc.list_queue: a page of live jobs in the order in which the queue will start them.
-- Running ones by start; then those that had a place at the last refresh of the expected starts, by it; then those
-- that had none: they came since, lack something, or are behind the last place that is looked at.
-- Arguments  p_filters  as of odc.list_jobs
--            p_place    where a page ended that had places: only higher ones come; null: from the first on
--            p_after    where one ended that had none, as of odc.list_jobs: the id of a running job, or of a pending
--                       one negated; null with p_place
--            p_limit    jobs at most
--            p_fields   the keys wanted; null: all
--            p_now      planned starts before it are given as it
-- Returns    one row: the jobs as a JSON array; the place of each, or null; and where the next page goes on, both null: there is none
-- Raises     OD010 BadRequest: an unknown field; OD001, OD002, OD004: a partition, account or QOS that is not there
create or replace function odc.list_queue(
    p_filters jsonb, p_place integer, p_after bigint, p_limit integer, p_fields text[], p_now timestamptz)
returns table (jobs text, places integer[], next_place integer, next bigint)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_at   record := odc._live_cursor(p_after);
    v_if   record;
    v_ids  bigint[];    -- one more than asked, so that it is known whether there is a next page
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
    -- Those behind all places lack something; where they will stand nobody knows.
    places := array(select nullif(least(p, 1000000), 1000000) from unnest(places[:p_limit]) with ordinality as u (p, n) order by u.n);
    return next;
end;
$$;
