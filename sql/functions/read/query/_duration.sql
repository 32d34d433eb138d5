-- odc._duration: a time limit in the format that users write: 01:30:00, 30-00:00:00.
create or replace function odc._duration(p_seconds integer)
returns text
language sql stable as $$
    select case when p_seconds >= 86400 then p_seconds / 86400 || '-' else '' end
           || to_char(make_interval(secs => p_seconds % 86400), 'HH24:MI:SS')
$$;
