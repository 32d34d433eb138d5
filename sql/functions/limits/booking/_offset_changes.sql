-- odc._offset_changes: p_from, and a moment at most one week before each change of these zones' offsets from UTC until p_to.
-- Two changes of a zone that cancel each other within a week are not seen.
-- Arguments  p_zones  null: UTC
create or replace function odc._offset_changes(p_zones text[], p_from timestamptz, p_to timestamptz)
returns setof timestamptz
language sql stable as $$
    select p_from
    union
    select w.at
      from (select distinct u.zone from unnest(p_zones) as u (zone) where u.zone is not null) as z
     cross join generate_series(p_from, p_to, interval '7 days') as w (at)
     where (w.at + interval '7 days') at time zone z.zone - w.at at time zone z.zone <> interval '7 days'
$$;
