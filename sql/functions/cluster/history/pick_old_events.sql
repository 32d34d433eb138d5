-- odc.pick_old_events: the next events that retention may delete: older than a moment, counted by the metrics, and
-- without a job or of a deleted job.
-- Arguments  p_after   start after this id
--            p_limit   number of ids to check
-- Returns    the events; the last id checked, null when no later one is old enough
create or replace function odc.pick_old_events(p_after bigint, p_before timestamptz, p_limit integer)
returns table (ids bigint[], last bigint)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ids bigint[];
begin
    select array_agg(s.id order by s.id) into v_ids
      from (select e.id, e.at, e.xid from event as e where e.id > p_after order by e.id limit p_limit) as s
     where s.at < p_before and s.xid < (select t.xid from tally_event as t);
    ids := array(select e.id
                   from unnest(v_ids) as u (id)
                   join event as e on e.id = u.id
                  where e.job_id is null or not exists (select from job as j where j.id = e.job_id)
                  order by e.id);
    last := v_ids[cardinality(v_ids)];
    return next;
end;
$$;
