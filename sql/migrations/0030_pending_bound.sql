-- How many pending jobs each user has at most: submits add to it, and count again where it reaches the user's limit.
-- Locks nothing: the table is new.

-- tasks is never below what submits made pending since counted_at; jobs that started or ended are still in it.
create table pending_bound (
    uid        integer primary key,
    tasks      bigint not null check (tasks >= 0),
    counted_at timestamptz not null   -- when all pending jobs were counted; -infinity: never
) with (fillfactor = 50);
