-- odc._occurrences: the occurrences of a booking that touch a period, in order. They begin at the same time of day in
-- UTC, where every day has 86,400 s, or in a zone. A time that a zone skips in spring is an hour later that day; of a
-- time that it has twice in autumn, the second one counts (as PostgreSQL reads local times).
-- Arguments  p_starts_at, p_duration_s, p_repeats, p_until, p_zone  as the table booking has them
--            p_from, p_to  an occurrence touches them when it ends after p_from and begins before p_to
create or replace function odc._occurrences(
    p_starts_at timestamptz, p_duration_s integer, p_repeats booking_repeat, p_until timestamptz, p_zone text,
    p_from timestamptz, p_to timestamptz)
returns table (starts_at timestamptz, ends_at timestamptz)
language sql stable as $$
    select o.starts_at, o.starts_at + make_interval(secs => p_duration_s)
      from (select case when p_repeats = 'weekly' then 7 else 1 end as days,
                   -- Local days may have 23 or 25 hours.
                   case when p_zone is null then 0 else 1 end as slack) as c
     cross join lateral generate_series(
           case when p_repeats = 'none' then 0
                else greatest(0, ceil(extract(epoch from p_from - p_starts_at) / (c.days * 86400)) - 1
                                 - p_duration_s / (c.days * 86400) - c.slack) end::bigint,
           case when p_repeats = 'none' then 0
                else floor(extract(epoch from least(p_to, p_until) - p_starts_at) / (c.days * 86400)) + c.slack end::bigint) as n
     cross join lateral (
           select case when p_zone is null or n = 0 then p_starts_at + n * make_interval(secs => c.days * 86400)
                       else ((p_starts_at at time zone p_zone) + make_interval(days => n::integer * c.days)) at time zone p_zone
                  end as starts_at) as o
     where o.starts_at < p_to and o.starts_at + make_interval(secs => p_duration_s) > p_from
       and (p_until is null or o.starts_at <= p_until)
       and (p_repeats <> 'weekdays' or extract(isodow from o.starts_at at time zone coalesce(p_zone, 'UTC')) <= 5)
     order by o.starts_at
$$;
