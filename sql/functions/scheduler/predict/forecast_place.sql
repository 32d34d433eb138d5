-- odc.forecast_place: the job at this place of the queue, as the forecast orders it; null: the queue is shorter.
create or replace function odc.forecast_place(p_now timestamptz, p_place integer)
returns bigint
language sql stable as $$
    select q.job_id from odc._forecast_queue(p_now, p_place) as q where q.place = p_place
$$;
