-- odc._attempt_ms: how long an attempt ran, in milliseconds, until it ended, not until odc learned of it. Inlined.
-- Arguments  p_exited_at  null: unknown, so it counts until p_now
create or replace function odc._attempt_ms(p_started_at timestamptz, p_exited_at timestamptz, p_now timestamptz)
returns bigint
language sql immutable as $$
    select greatest(0, (date_part('epoch', least(p_now, coalesce(p_exited_at, p_now)) - p_started_at) * 1000)::bigint)
$$;
