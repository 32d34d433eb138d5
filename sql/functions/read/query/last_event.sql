-- odc.last_event: the event that odc.events_after would give last now; 0 when there is none.
create or replace function odc.last_event()
returns bigint
language sql stable as $$
    select coalesce((select id from odc.event
                      where xid < odc._final_below()
                      order by xid desc, id desc
                      limit 1), 0)
$$;
