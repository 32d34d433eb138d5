-- odc._occurrences: the occurrences of a booking that touch a period, in order.
-- Its times of day are in UTC, where every day has 86,400 s.
-- Arguments  p_starts_at, p_duration_s, p_repeats, p_until  as the table booking has them
--            p_from, p_to  an occurrence touches them when it ends after p_from and begins before p_to
create or replace function odc._occurrences(
    p_starts_at timestamptz, p_duration_s integer, p_repeats booking_repeat, p_until timestamptz,
    p_from timestamptz, p_to timestamptz)
returns table (starts_at timestamptz, ends_at timestamptz)
language sql stable as $$
    select o.starts_at, o.starts_at + make_interval(secs => p_duration_s)
      from (select case when p_repeats = 'weekly' then 604800 else 86400 end as period_s) as c
     cross join lateral generate_series(
           case when p_repeats = 'none' then 0
                else greatest(0, ceil(extract(epoch from p_from - p_starts_at) / c.period_s) - 1
                                 - p_duration_s / c.period_s) end::bigint,
           case when p_repeats = 'none' then 0
                else floor(extract(epoch from least(p_to, p_until) - p_starts_at) / c.period_s) end::bigint) as n
     cross join lateral (select p_starts_at + n * make_interval(secs => c.period_s) as starts_at) as o
     where o.starts_at < p_to and o.starts_at + make_interval(secs => p_duration_s) > p_from
       and (p_until is null or o.starts_at <= p_until)
       and (p_repeats <> 'weekdays' or extract(isodow from o.starts_at at time zone 'UTC') <= 5)
     order by o.starts_at
$$;
