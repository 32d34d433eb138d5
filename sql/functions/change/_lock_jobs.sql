-- odc._lock_jobs: lock what a command is about, so that it stays where it is. Takes the turn first.
-- Locks      the turn; pending and running rows by job
create or replace function odc._lock_jobs(p_actor jsonb, p_filters jsonb)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_ids bigint[];
begin
    perform _take_turn();
    select array_agg(f.job_id) into v_ids from _find_jobs(p_actor, p_filters) as f where f.place in ('pending', 'running');
    perform from pending where job_id = any (v_ids) order by job_id for update;
    perform from running where job_id = any (v_ids) order by job_id for update;
end;
$$;
