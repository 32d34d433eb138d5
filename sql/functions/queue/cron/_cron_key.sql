-- odc._cron_key: equal for entries that start the same jobs at the same times.
create or replace function odc._cron_key(p_entry odc.cron_entry)
returns jsonb
language sql stable
begin atomic
    select jsonb_build_array(
               p_entry.minutes, p_entry.hours, p_entry.days, p_entry.months, p_entry.weekdays, p_entry.any_day,
               p_entry.every_hour, p_entry.zone,
               -- The user may edit the text on another machine.
               p_entry.request - 'submit_host');
end;
