-- odc._next_cron: the first occurrence of a schedule after p_after, for clocks of its zone.
-- When clocks change, an entry at given hours keeps its times of day: a time that is skipped counts at the end of the gap,
-- once however many are skipped, and a time that clocks show twice counts the first time only. An entry for every hour, or
-- every n-th (* or */n), follows the clock instead: it occurs at every minute that shows a time of the schedule.
-- Arguments  p_minutes, p_hours, p_days, p_months, p_weekdays, p_any_day, p_every_hour, p_zone  as in the table cron_entry
-- Returns    null: never
-- Source     the rules of crontab(5) and of cron(8) of Debian
create or replace function odc._next_cron(
    p_minutes integer[], p_hours integer[], p_days integer[], p_months integer[], p_weekdays integer[], p_any_day boolean,
    p_every_hour boolean, p_zone text, p_after timestamptz)
returns timestamptz
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_minute constant interval := interval '1 minute';
    v_at     timestamptz := date_trunc('minute', p_after) + v_minute;
    v_local  timestamp := date_trunc('minute', p_after at time zone p_zone) + v_minute;
    v_date   date;
    v_step   interval;
begin
    loop
        if p_every_hour then
            v_local := v_at at time zone p_zone;
        end if;
        if v_date is distinct from v_local::date then
            v_date := _next_cron_date(p_days, p_months, p_weekdays, p_any_day, v_local::date);
            exit when v_date is null;
        end if;
        if v_date > v_local::date then
            v_local := v_date;
            v_at := _local_instant(v_local, p_zone);
            continue;
        elsif extract(hour from v_local)::integer <> all (p_hours) then
            v_step := v_minute * (60 - extract(minute from v_local)::integer);
        elsif extract(minute from v_local)::integer <> all (p_minutes) then
            v_step := v_minute;
        elsif p_every_hour then
            return v_at;
        else
            v_at := _local_instant(v_local, p_zone);
            if v_at > p_after then
                return v_at;
            end if;
            v_step := v_minute;     -- clocks show that time for the second time
        end if;
        v_local := v_local + v_step;
        v_at := v_at + v_step;
    end loop;
    return null;
end;
$$;
