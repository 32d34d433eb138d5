-- odc.note_orphans: record that an executor found something running that belongs to no job, and removes it.
-- Arguments  p_names  the executor's names, such as odc-7-1-0: job, attempt, rank
-- Raises     OD020 LeadershipLost
create or replace function odc.note_orphans(p_term bigint, p_names text[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    insert into event (at, kind, actor, job_id, detail)
    select p_now, 'orphan', 'odcd', j.id, jsonb_build_object('name', n.name)
      from unnest(p_names) as n (name)
      left join job as j on j.id = substring(n.name from '^odc-([0-9]{1,18})-')::bigint
     order by n.name;
    perform _wake();
end;
$$;
