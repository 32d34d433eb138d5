-- odc.queue_positions: the positions of all pending dev servers, each counted within its GPU type among all jobs that
-- wait for it, in the order of a pass. It costs as much as reading the first jobs of every class, so callers share one
-- result.
-- Returns    JSON {job id: position}; without one: jobs beyond the first of the queue, or kept back by a limit
create or replace function odc.queue_positions(p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_most constant integer := 2000;
begin
    if not exists (select from reservation as v join pending as p on p.job_id = v.job_id) then
        return '{}';
    end if;
    return (select coalesce(jsonb_object_agg(q.job_id, q.place), '{}')::text
              from (select f.job_id, row_number() over (partition by coalesce(s.gpu_type, '') order by f.place) as place
                      from _forecast_queue(p_now, v_most) as f join shape as s on s.id = f.shape_id) as q
              join reservation as v on v.job_id = q.job_id);
end;
$$;
