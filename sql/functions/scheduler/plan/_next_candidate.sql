-- odc._next_candidate: go on to the next job of the queue that may start or become protected.
-- Arguments  p_queue    runs of rows, two values each: its next row, its last row. The first is the row considered last
--            p_sliced   the last row of the slice: the run that has rows of all classes
--            p_leads … p_classes  per row, see _plan_slice
--            p_backfill … p_preempts  per class (p_dead, p_full: per shape), see _is_open
-- Returns    the queue, its first value the row of the next candidate; empty: there is none
create or replace function odc._next_candidate(
    p_queue integer[], p_sliced integer,
    p_leads bigint[], p_scores float8[], p_ats timestamptz[], p_job_ids bigint[], p_classes integer[],
    p_backfill boolean, p_shapes integer[], p_limits_s integer[], p_reasons text[], p_later boolean[],
    p_dead integer[], p_full boolean[], p_preempts boolean[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_row integer;  v_other integer;  v_class integer;  v_shape integer;
begin
    loop
        v_row := p_queue[1] + 1;  v_other := p_queue[3];
        if v_row > p_queue[2] then
            p_queue := p_queue[3:];
            exit when v_other is null;
            v_row := v_other;
        elsif v_other is not null
              and _goes_before(p_leads[v_other], p_scores[v_other], p_ats[v_other], p_job_ids[v_other],
                               p_leads[v_row], p_scores[v_row], p_ats[v_row], p_job_ids[v_row]) then
            p_queue := _queue_run(p_queue[3:], v_row, p_queue[2], p_leads, p_scores, p_ats, p_job_ids);
            v_row := v_other;
        else
            p_queue[1] := v_row;
        end if;
        v_class := p_classes[v_row];  v_shape := p_shapes[v_class];
        exit when _is_open(p_reasons[v_class], p_later[v_class], p_backfill, p_limits_s[v_class], p_dead[v_shape], p_full[v_shape],
                           p_preempts[v_class]);
        -- A class stays closed, so skip all of a run that has only this class.
        if p_queue[2] <> p_sliced then
            p_queue[1] := p_queue[2];
        end if;
    end loop;
    return p_queue;
end;
$$;
