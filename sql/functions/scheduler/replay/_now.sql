-- odc._now: the moment set by odc._set_now in this transaction; for changes made by hand, the server's clock.
create or replace function odc._now()
returns timestamptz
language sql volatile as $$
    select coalesce(nullif(current_setting('odcd.now', true), '')::timestamptz, clock_timestamp());
$$;
