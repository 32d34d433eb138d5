-- odc._check_zones: require names of the time zone database.
-- Raises     OD010 BadRequest
create or replace function odc._check_zones(p_zones text[])
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_wrong text;
    v_near  text;
begin
    -- PostgreSQL also accepts abbreviations, which have no daylight saving time, and POSIX rules with the opposite sign.
    select min(z.zone) into v_wrong
      from unnest(p_zones) as z (zone)
     where z.zone <> 'UTC'
       and (z.zone !~ '^[A-Za-z_]+(/[A-Za-z0-9_+-]+)+$'
            or z.zone not in (select name from pg_timezone_names));
    if v_wrong is not null then
        v_near := _near_zone(left(v_wrong, 100));
        raise exception using errcode = 'OD010',
            message = format('time zone "%s" does not exist', left(v_wrong, 100)),
            hint = coalesce('Did you mean ' || v_near || '? ', '')
                   || 'Use a name of the time zone database, as Europe/Berlin or America/New_York.';
    end if;
end;
$$;
