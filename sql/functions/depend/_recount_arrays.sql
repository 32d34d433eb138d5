-- odc._recount_arrays: count the running tasks of arrays, and how many more may start.
-- Locks      array_job, then pending rows of these arrays
create or replace function odc._recount_arrays(p_array_ids bigint[])
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    update array_job as a
       set running = n.running
      from (select i.id, count(r.job_id)::integer as running
              from unnest(p_array_ids) as i (id)
              left join running as r on r.array_job_id = i.id
             group by i.id) as n
     where a.job_id = n.id and a.running <> n.running;
    perform _refresh_open_counts(p_array_ids);
end;
$$;
