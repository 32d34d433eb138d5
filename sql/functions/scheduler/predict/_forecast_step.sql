-- odc._forecast_step: the step of a moment. Steps grow with the distance. Inlined.
-- Arguments  p_at  seconds from now;  p_bits  a step is 1 / 2^bits of the distance;  p_powers  the powers of two
create or replace function odc._forecast_step(p_at integer, p_bits integer, p_powers integer[])
returns integer
language sql immutable as $$
    select (p_at >> greatest(0, width_bucket(p_at, p_powers) - 1 - p_bits))
           + (greatest(0, width_bucket(p_at, p_powers) - 1 - p_bits) << p_bits)
$$;
