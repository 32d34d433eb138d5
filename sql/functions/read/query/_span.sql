-- odc._span: a duration for people: 2 d 3 h, 3 h, 2 h 30 min, 5 min, 45 s.
create or replace function odc._span(p_seconds bigint)
returns text
language sql immutable as $$
    select case when p_seconds >= 86400 then concat_ws(' ', p_seconds / 86400 || ' d', nullif(p_seconds % 86400 / 3600, 0) || ' h')
                when p_seconds >= 3600 then concat_ws(' ', p_seconds / 3600 || ' h', nullif(p_seconds % 3600 / 60, 0) || ' min')
                when p_seconds >= 60 then p_seconds / 60 || ' min'
                else p_seconds || ' s' end
$$;
