-- odc._begin_pending: let jobs whose begin time has come start; return whether there are any.
-- Locks      the caller holds the turn; pending rows of these, and of arrays
create or replace function odc._begin_pending(p_job_ids bigint[], p_now timestamptz)
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_arrays bigint[];
begin
    with begun as (
        update pending as p
           set begun = true, reason = case when held is not null then reason end,
               eligible_at = case when held is null and dependency = 'met' and lacks is null then coalesce(eligible_at, p_now)
                                  else eligible_at end
         where p.job_id = any (p_job_ids)
        returning p.array_job_id
    )
    select array_agg(distinct array_job_id) filter (where array_job_id is not null) into v_arrays from begun;
    if v_arrays is not null then
        perform _refresh_open_counts(v_arrays);
    end if;
    return p_job_ids is not null;
end;
$$;
