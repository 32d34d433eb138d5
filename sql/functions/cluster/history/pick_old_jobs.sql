-- odc.pick_old_jobs: the next jobs that retention may delete, lowest id first.
-- Arguments  p_after   start after this id
--            p_before  they ended before this moment
--            p_limit   number of ids to check
-- Returns    the jobs; the last id checked, null when no later job can be old enough, because ids rise with time
create or replace function odc.pick_old_jobs(p_after bigint, p_before timestamptz, p_limit integer, p_now timestamptz)
returns table (ids bigint[], last bigint)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ids bigint[];
begin
    select array_agg(s.id order by s.id) into v_ids
      from (select j.id, j.submitted_at from job as j where j.id > p_after order by j.id limit p_limit) as s
     where s.submitted_at < p_before;
    ids := array(select f from _forgettable(v_ids, p_before, p_now) as f);
    last := v_ids[cardinality(v_ids)];
    return next;
end;
$$;
