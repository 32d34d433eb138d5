-- odc._near_zone: the time zone whose city resembles that of a text most, by the pairs of letters that they share (Dice's
-- coefficient); of several, the one in the same region.
-- Arguments  p_text  REGION/CITY, or a city
-- Returns    null: none resembles it
create or replace function odc._near_zone(p_text text)
returns text
language sql stable set search_path = odc, pg_temp as $$
    with asked as (
        select split_part(lower(p_text), '/', 1) as region, regexp_replace(lower(p_text), '^.*/', '') as city
    ), zone as (
        select z.name, split_part(lower(z.name), '/', 1) as region, regexp_replace(lower(z.name), '^.*/', '') as city
          from pg_timezone_names as z
         where z.name ~ '^(Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Europe|Indian|Pacific)/'
    ), alike as (
        select z.name, z.region = a.region as same_region,
               (select 2.0 * count(*) filter (where s.sides = 2) / nullif(sum(s.sides), 0)
                  from (select count(distinct p.side) as sides
                          from (select 1 as side, substr(z.city, i, 2) as pair from generate_series(1, length(z.city) - 1) as i
                                union select 2, substr(a.city, i, 2) from generate_series(1, length(a.city) - 1) as i) as p
                         group by p.pair) as s) as score
          from zone as z cross join asked as a
    )
    select name from alike where score >= 0.5 order by score desc, same_region desc, name limit 1
$$;
