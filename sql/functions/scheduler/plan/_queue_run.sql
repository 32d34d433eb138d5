-- odc._queue_run: insert a run of rows into the queue of runs, sorted by each run's next row.
-- Arguments  p_queue  runs in order;  p_at  per run its next row;  the others  per row, see _rank_job
create or replace function odc._queue_run(
    p_queue integer[], p_run integer, p_at integer[],
    p_leads bigint[], p_scores float8[], p_ats timestamptz[], p_job_ids bigint[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    q constant integer := p_at[p_run];
    v_from integer := 1;  v_to integer := cardinality(p_queue) + 1;
    v_mid integer;  p integer;
begin
    while v_from < v_to loop
        v_mid := (v_from + v_to) / 2;
        p := p_at[p_queue[v_mid]];
        if _goes_before(p_leads[q], p_scores[q], p_ats[q], p_job_ids[q],
                        p_leads[p], p_scores[p], p_ats[p], p_job_ids[p]) then
            v_to := v_mid;
        else
            v_from := v_mid + 1;
        end if;
    end loop;
    return p_queue[:v_from - 1] || p_run || p_queue[v_from:];
end;
$$;
