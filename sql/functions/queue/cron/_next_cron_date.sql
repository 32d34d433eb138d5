-- odc._next_cron_date: the first date from p_from on that a schedule allows.
-- Arguments  p_days, p_months, p_weekdays, p_any_day  as in the table cron_entry
-- Returns    null: none within 45 years. 29 February is a given weekday every 40 years at least
create or replace function odc._next_cron_date(
    p_days integer[], p_months integer[], p_weekdays integer[], p_any_day boolean, p_from date)
returns date
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_date     date := p_from;
    v_day      boolean;
    v_weekday  boolean;
begin
    while v_date < p_from + 45 * 366 loop
        if extract(month from v_date)::integer <> all (p_months) then
            v_date := (date_trunc('month', v_date::timestamp) + interval '1 month')::date;
            continue;
        end if;
        v_day := extract(day from v_date)::integer = any (p_days);
        v_weekday := extract(dow from v_date)::integer = any (p_weekdays);
        if (v_day and v_weekday) or (p_any_day and (v_day or v_weekday)) then
            return v_date;
        end if;
        v_date := v_date + 1;
    end loop;
    return null;
end;
$$;
