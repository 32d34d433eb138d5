-- odc._used_json: what processes used, as the API returns it; null: it was not measured.
-- Arguments  p_used  see the column attempt.used
create or replace function odc._used_json(p_used bigint[])
returns jsonb
language sql immutable strict set search_path = odc, pg_temp as $$
    select jsonb_build_object('user_cpu_s', round(p_used[1] / 1000.0, 3), 'system_cpu_s', round(p_used[2] / 1000.0, 3),
                              'max_rss_kib', p_used[3], 'read_kib', p_used[4], 'written_kib', p_used[5])
$$;
