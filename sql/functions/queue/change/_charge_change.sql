-- odc._charge_change: count the bytes that changes of jobs add to the database: their events have the old and the new
-- values, and pending_past the old row, which has the tasks of an array in up to 10,000 ranges.
-- Arguments  p_actor  {user, uid, operator, stored_limit}; stored_limit: bytes that the user may add per day, null: any number
--            p_rows   number of jobs and tasks that change
--            p_ids    pending rows that change; those of other jobs have no tasks
-- Locks      with a stored_limit, stored_bound by uid, to the end of the transaction
-- Raises     OD042 TooMuchStored
create or replace function odc._charge_change(p_actor jsonb, p_rows bigint, p_ids bigint[], p_changes jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_row_bytes constant integer := 512;
    v_tasks     bigint;
    r record;
begin
    if p_actor ->> 'stored_limit' is null then
        return;
    end if;
    select coalesce(sum(pg_column_size(p.tasks) + coalesce(pg_column_size(p.closed_tasks), 0)), 0) into v_tasks
      from unnest(p_ids) as i (id)
     cross join lateral (select x.tasks, x.closed_tasks from pending as x where x.job_id = i.id and x.tasks is not null offset 0) as p;
    select * into r
      from _refused_by_stored(array[(p_actor ->> 'uid')::integer], array[p_actor ->> 'user'], array[(p_actor ->> 'stored_limit')::bigint],
                              array[p_rows * (v_row_bytes + 2 * octet_length(p_changes::text)) + v_tasks], p_now);
    if found then
        raise exception using errcode = r.code, message = r.message, hint = r.hint;
    end if;
end;
$$;
