-- Recurring jobs. New tables lock nothing.

-- One per user: the text of their recurring jobs, in scrontab's format.
create table cron_table (
    uid         integer primary key,
    user_name   text not null,
    gid         integer not null,             -- of the jobs
    content     text not null,                -- as the user wrote it
    zone        text not null,                -- its times, unless a CRON_TZ line says otherwise
    set_at      timestamptz not null
);

-- One per line that starts jobs.
create table cron_entry (
    id              bigint generated always as identity primary key,
    uid             integer not null references cron_table on delete cascade,
    first_line      integer not null,         -- the first #SCRON line of the entry, or its own, from 1
    line            integer not null,
    schedule        text not null,            -- as written
    minutes         integer[] not null,
    hours           integer[] not null,
    days            integer[] not null,       -- of the month
    months          integer[] not null,
    weekdays        integer[] not null,       -- 0: Sunday
    any_day         boolean not null,         -- the day of the month or of the week counts; else both
    every_hour      boolean not null,         -- the hours begin with *: see odc._next_cron
    zone            text not null,
    request         jsonb not null,           -- what is submitted, as sbatch's command line
    next_at         timestamptz,              -- null: disabled, or never again
    last_at         timestamptz,              -- the last occurrence that was due
    last_result     text check (last_result in ('submitted', 'skipped', 'refused')),
    last_why        text,                     -- why it was skipped or refused
    last_job_id     bigint,                   -- the last job, also after occurrences without one
    skipped         integer not null default 0,
    disabled_at     timestamptz,
    disabled_by     text,
    disabled_why    text
);
create index cron_entry_uid on cron_entry (uid);
create index cron_entry_due on cron_entry (next_at, id) where next_at is not null;
create index cron_entry_job on cron_entry (last_job_id) where last_job_id is not null;
