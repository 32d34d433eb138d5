-- odc.list_job_events: the last events of one job, oldest first; of an array's row, without those of its tasks.
-- Arguments  p_limit  maximum number of events
-- Returns    a JSON array of {at, kind, actor, detail}
create or replace function odc.list_job_events(p_job_id bigint, p_limit integer)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    return (select coalesce(json_agg(json_build_object(
                       'at', to_char(e.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'kind', e.kind,
                       'actor', e.actor, 'detail', e.detail) order by e.id), '[]')::text
              from (select * from event as v where v.job_id = p_job_id order by v.id desc limit p_limit) as e);
end;
$$;
