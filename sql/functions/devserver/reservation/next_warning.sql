-- odc.next_warning: when take_warnings will return something new; null: not in sight.
create or replace function odc.next_warning(p_now timestamptz)
returns timestamptz
language sql stable as $$
    select min(w.due_at) from odc._warning_levels() as w where w.due_at > p_now
$$;
