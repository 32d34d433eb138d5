-- odc._duration: a duration as Python and users write it: 5:00, 1:30:00, 30-00:00:00, UNLIMITED.
create or replace function odc._duration(p_seconds integer)
returns text
language sql stable as $$
    select case when p_seconds >= 2147483647 then 'UNLIMITED'
                when p_seconds >= 86400 then p_seconds / 86400 || '-' || to_char(make_interval(secs => p_seconds % 86400), 'HH24:MI:SS')
                when p_seconds >= 3600 then to_char(make_interval(secs => p_seconds), 'FMHH24:MI:SS')
                else to_char(make_interval(secs => p_seconds), 'FMMI:SS') end
$$;
