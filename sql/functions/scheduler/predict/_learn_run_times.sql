-- odc._learn_run_times: record jobs that have just ended, so that _fold_run_times can learn how long they ran.
-- It is part of the transaction that ends them, so none is lost or counted twice; it costs one narrow row per job.
-- Arguments  p_job_ids  jobs that reached a terminal state, in the order of their ends
create or replace function odc._learn_run_times(p_job_ids bigint[], p_now timestamptz)
returns void
language sql volatile set search_path = odc, pg_temp as $$
    insert into run_time_new (job_id) select id from unnest(p_job_ids) with ordinality as u (id, o) order by o
$$;
