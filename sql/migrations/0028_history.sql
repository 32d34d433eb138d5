-- Lists of ended jobs by index, and what retention and exports keep track of. See docs/decisions/0028.
-- Locks job for an instant. The indexes are made on the parent alone here: new partitions get theirs when they are created,
-- and the leader builds those of existing partitions concurrently, which blocks nobody (odcd/history/partitions.py).

-- By state and end: the page's list, `odcctl history`, retention. By user and end: `odcctl history -u`.
create index job_ended on only job (state, ended_at desc, id desc) where state is not null;
create index job_user_ended on only job (user_name, ended_at desc, id desc) where state is not null;

-- Until when a text may have been referenced by a submission, to the day: retention deletes those older than every job.
alter table job_text add column used_at timestamptz not null default now();

-- What retention deleted of the sums that odc.check_books compares.
create table history_gone (
    one    boolean primary key default true check (one),
    gpu_ms bigint not null default 0
);
insert into history_gone default values;

-- Exports of ended jobs (kind jobs) and of events without a job (kind events): written to a target and read back.
-- restored_until: the rows were restored for reading, and retention leaves them alone until then.
create table history_export (
    name           text primary key,
    kind           text not null check (kind in ('jobs', 'events')),
    low            bigint not null,
    high           bigint not null check (high > low),
    rows           bigint not null check (rows >= 0),
    target         text not null,
    digest         text not null,
    made_at        timestamptz not null,
    restored_until timestamptz
);
