-- odc._decay: the rest of an amount after some half-lives: exactly half of it after each. Inlined.
-- Within a half-life, 2^-x is the first terms of its Taylor series at 0 (error below 1e-9), with + and * only,
-- so the result is the same on every machine.
-- Arguments  p_halvings  whole half-lives since the amount was recorded
--            p_rest      the remaining part of a half-life, 0 to 1; a column, because it is read ten times
create or replace function odc._decay(p_amount bigint, p_halvings bigint, p_rest float8)
returns bigint
language sql immutable as $$
    select case
        when p_halvings < 62
        then (p_amount * (1 - 0.6931471805599453::float8 * p_rest * (1 - 0.34657359027997264::float8 * p_rest
                * (1 - 0.23104906018664842::float8 * p_rest * (1 - 0.17328679513998632::float8 * p_rest
                * (1 - 0.13862943611198905::float8 * p_rest * (1 - 0.11552453009332421::float8 * p_rest
                * (1 - 0.09902102579427789::float8 * p_rest * (1 - 0.08664339756999316::float8 * p_rest
                * (1 - 0.07701635339554948::float8 * p_rest * (1 - 0.06931471805599453::float8 * p_rest))))))))))
              / (1::bigint << p_halvings::integer))::bigint
        else 0 end
$$;
