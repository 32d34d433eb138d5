-- odc._unit_hours: seconds of GPUs or CPUs for people: 24 GPU-hours, 1.5 GPU-hours, 40 GPU-minutes, 0 GPU-seconds.
create or replace function odc._unit_hours(p_seconds bigint, p_unit text)
returns text
language sql immutable as $$
    select case when p_seconds >= 3600 then trim_scale(round(p_seconds / 3600.0, 1)) || ' ' || p_unit || '-hours'
                when p_seconds >= 60 then p_seconds / 60 || ' ' || p_unit || '-minutes'
                else p_seconds || ' ' || p_unit || '-seconds' end
$$;
