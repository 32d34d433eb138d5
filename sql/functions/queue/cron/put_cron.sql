-- odc.put_cron: replace the caller's recurring jobs by those of a text. An entry that is the same as before, with its
-- options, variables and zone, keeps its next time and its last job, wherever its line is now. Pending jobs of entries
-- that are gone are cancelled; running jobs continue.
-- Arguments  p_zone     of the text
--            p_entries  array of {first_line, line, schedule, minutes, hours, days, months, weekdays, any_day, every_hour,
--                       zone, request}, in the order of lines
-- Returns    as show_cron
-- Locks      the turn; cron_table, cron_entry; pending, job
-- Raises     OD010 BadRequest: a time zone does not exist
create or replace function odc.put_cron(
    p_actor jsonb, p_gid integer, p_content text, p_zone text, p_entries jsonb, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_uid  constant integer := (p_actor ->> 'uid')::integer;
    v_kept bigint[];      -- per entry the id of the row that it continues; null: it is new
begin
    perform _check_zones(p_zone || array(select e ->> 'zone' from jsonb_array_elements(p_entries) as e));
    perform _take_turn(p_now);
    insert into cron_table (uid, user_name, gid, content, zone, set_at)
    values (v_uid, p_actor ->> 'user', p_gid, p_content, p_zone, p_now)
        on conflict (uid) do update
       set user_name = excluded.user_name, gid = excluded.gid, content = excluded.content, zone = excluded.zone,
           set_at = excluded.set_at;
    perform from cron_entry where uid = v_uid order by id for update;

    -- Of equal entries, the first of the text continues the first row, and so on.
    select coalesce(array_agg(o.id order by a.n), '{}') into v_kept
      from (select e.n, k.key, row_number() over (partition by k.key order by e.n) as nth
              from jsonb_array_elements(p_entries) with ordinality as e (entry, n)
             cross join lateral (select _cron_key(r) as key from jsonb_populate_record(null::cron_entry, e.entry) as r) as k) as a
      left join (select c.id, k.key, row_number() over (partition by k.key order by c.line) as nth
                   from cron_entry as c cross join lateral (select _cron_key(c) as key) as k
                  where c.uid = v_uid) as o on o.key = a.key and o.nth = a.nth;
    perform _remove_cron_entries(
        v_uid, array(select id from cron_entry where uid = v_uid and id <> all (array_remove(v_kept, null))),
        p_actor ->> 'user', p_now);
    with asked as (
        select k.id, r.*
          from unnest(v_kept) with ordinality as k (id, n)
          join jsonb_array_elements(p_entries) with ordinality as e (entry, n) using (n)
         cross join lateral jsonb_to_record(e.entry) as r (
               first_line integer, line integer, schedule text, minutes integer[], hours integer[], days integer[],
               months integer[], weekdays integer[], any_day boolean, every_hour boolean, zone text, request jsonb)
    ), moved as (
        update cron_entry as c
           set first_line = a.first_line, line = a.line, schedule = a.schedule, request = a.request,
               next_at = case when c.disabled_at is null then c.next_at
                              else _next_cron(c.minutes, c.hours, c.days, c.months, c.weekdays, c.any_day, c.every_hour, c.zone,
                                              p_now) end,
               disabled_at = null, disabled_by = null, disabled_why = null
          from asked as a
         where c.id = a.id
    )
    insert into cron_entry (uid, first_line, line, schedule, minutes, hours, days, months, weekdays, any_day, every_hour, zone,
                            request, next_at)
    select v_uid, a.first_line, a.line, a.schedule, a.minutes, a.hours, a.days, a.months, a.weekdays, a.any_day, a.every_hour,
           a.zone, a.request,
           _next_cron(a.minutes, a.hours, a.days, a.months, a.weekdays, a.any_day, a.every_hour, a.zone, p_now)
      from asked as a
     where a.id is null
     order by a.line;
    insert into event (at, kind, actor, detail)
    values (p_now, 'cron_set', p_actor ->> 'user', jsonb_build_object('entries', jsonb_array_length(p_entries)));
    perform _wake();
    return _cron_json(v_uid, p_actor ->> 'user');
end;
$$;
