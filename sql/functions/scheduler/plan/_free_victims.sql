-- odc._free_victims: protected jobs that start after the grace of jobs that are to be ended find more free there.
-- Arguments  p_points, p_node_ids  see _booking_points;  p_victims  see _protect_job; null: none
create or replace function odc._free_victims(p_now timestamptz, p_points bigint[], p_node_ids integer[], p_victims bigint[])
returns bigint[]
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_gone record;
begin
    if p_victims is null then
        return p_points;
    end if;
    for v_gone in
        select n.ord::integer as node, a.gpus, a.cpus, a.mem_mib, u.at,
               (case when a.ends_at < 'infinity' then extract(epoch from a.ends_at - p_now) * 1000000
                     else 8000000000000000000 end)::bigint as until
          from unnest(_every(p_victims, 4, 1), _every(p_victims, 4, 4)) as u (job_id, at)
          join allocation as a on a.job_id = u.job_id
          join unnest(p_node_ids) with ordinality as n (id, ord) on n.id = a.node_id
    loop
        p_points := _add_at_points(p_points, v_gone.node, v_gone.at, v_gone.until, v_gone.gpus, v_gone.cpus, v_gone.mem_mib);
    end loop;
    return p_points;
end;
$$;
