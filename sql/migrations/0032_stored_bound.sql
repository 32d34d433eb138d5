-- How many bytes each user's submits added to the database of late, for the limit per day; and use_page_key tells more.
-- Locks nothing: the table is new.

-- It returns one column more.
drop function if exists odc.use_page_key(text, timestamptz);

-- bytes: what was left at that moment; it drains evenly, the user's limit in a day.
create table stored_bound (
    uid   integer primary key,
    bytes bigint not null check (bytes >= 0),
    at    timestamptz not null
) with (fillfactor = 50);
