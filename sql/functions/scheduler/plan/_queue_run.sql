-- odc._queue_run: insert a run of rows into the queue of runs, sorted by each run's next row.
-- Arguments  p_queue  two values per run: its next row, its last row;  p_row, p_last  those of the new run
--            the others  per row, see _rank_job
create or replace function odc._queue_run(
    p_queue integer[], p_row integer, p_last integer, p_leads bigint[], p_scores float8[], p_ats timestamptz[], p_job_ids bigint[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_from integer := 0;  v_to integer := cardinality(p_queue) / 2;
    v_middle integer;  v_other integer;
begin
    while v_from < v_to loop
        v_middle := (v_from + v_to) / 2;
        v_other := p_queue[2 * v_middle + 1];
        if _goes_before(p_leads[p_row], p_scores[p_row], p_ats[p_row], p_job_ids[p_row],
                        p_leads[v_other], p_scores[v_other], p_ats[v_other], p_job_ids[v_other]) then
            v_to := v_middle;
        else
            v_from := v_middle + 1;
        end if;
    end loop;
    return p_queue[:2 * v_from] || array[p_row, p_last] || p_queue[2 * v_from + 1:];
end;
$$;
