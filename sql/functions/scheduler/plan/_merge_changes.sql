-- odc._merge_changes: merge two lists of this pass's own changes into one, in order of time.
-- Arguments  microseconds from the pass's time; and the change: h, -h: protected job h starts, ends; 1000000 + s: start
--            s ends
create or replace function odc._merge_changes(
    p_ats bigint[], p_refs integer[], p_new_ats bigint[], p_new_refs integer[], out ats bigint[], out refs integer[])
language sql immutable set search_path = odc, pg_temp as $$
    select array_agg(u.at order by u.at, u.ref), array_agg(u.ref order by u.at, u.ref)
      from (select * from unnest(p_ats, p_refs) as o (at, ref)
             union all
            select * from unnest(p_new_ats, p_new_refs) as n (at, ref)) as u
$$;
