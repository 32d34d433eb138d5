-- odc.forget_jobs: delete those of the given ended jobs that nothing live needs, with all their rows.
-- Arguments  p_ids     a few hundred at most, because the turn is held
--            p_before  only jobs that ended before this moment
-- Returns    the number of deleted jobs
-- Locks      term for share; the turn; the rows
-- Raises     OD020 LeadershipLost
create or replace function odc.forget_jobs(p_term bigint, p_ids bigint[], p_before timestamptz, p_now timestamptz)
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_ids    bigint[];
    v_arrays bigint[];
    v_table  record;
begin
    perform _hold_term(p_term);
    -- A session that submits a job depending on one of these holds the turn too.
    perform _take_turn(p_now);
    v_ids := array(select f from _forgettable(p_ids, p_before, p_now) as f);
    if v_ids = '{}' then
        return 0;
    end if;
    update history_gone
       set gpu_ms = gpu_ms + (select coalesce(sum(a.gpus * _attempt_ms(a.started_at, a.ended_at, a.ended_at)), 0)
                                from attempt as a where a.job_id = any (v_ids));
    -- Deletes from some tables write rows of the past. Those are deleted as well: tables of the past come last.
    for v_table in select t.name, t.key from history_tables() as t order by t.name like '%\_past' loop
        execute format('delete from %I where %I = any ($1)', v_table.name, v_table.key) using v_ids;
    end loop;
    return cardinality(v_ids);
end;
$$;
