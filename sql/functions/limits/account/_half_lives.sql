-- odc._half_lives: the number of half-lives of usage between two moments: whole ones, and the rest from 0 to 1.
create or replace function odc._half_lives(p_from timestamptz, p_to timestamptz)
returns table (halvings bigint, rest float8)
language sql stable as $$
    select a.age_ms / a.half_life_ms, (a.age_ms % a.half_life_ms)::float8 / a.half_life_ms
      from (select greatest(0, (date_part('epoch', p_to - p_from) * 1000)::bigint) as age_ms,
                   s.half_life_s * 1000::bigint as half_life_ms
              from odc.priority_setting as s) as a
$$;
