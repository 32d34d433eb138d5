-- odc._fail_launch: record that a group did not grow. It is not tried again for a minute, then two, …, at most an hour.
create or replace function odc._fail_launch(p_name text, p_failure text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    update elastic_group
       set failures = failures + 1, failure = p_failure,
           retry_at = p_now + least(interval '1 hour', interval '1 minute' * (1 << least(failures, 6)))
     where name = p_name;
    insert into event (at, kind, actor, detail)
    select p_now, 'nodes_not_launched', 'odcd', jsonb_build_object('group', name, 'why', failure, 'retry_at', _iso(retry_at))
      from elastic_group where name = p_name;
end;
$$;
