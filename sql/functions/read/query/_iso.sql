-- odc._iso: a moment in the form used in JSON: ISO 8601, UTC, whole seconds, Z.
-- Arguments  p_at  null and infinity give null
create or replace function odc._iso(p_at timestamptz)
returns text
language sql stable as $$
    select case when isfinite(p_at) then to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') end
$$;
