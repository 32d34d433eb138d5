-- odc.last_event: the last event that odc.events_after would return now; 0 if there is none.
create or replace function odc.last_event()
returns bigint
language sql stable as $$
    select coalesce((select id from odc.event
                      where xid < odc._final_below()
                      order by xid desc, id desc
                      limit 1), 0)
$$;
