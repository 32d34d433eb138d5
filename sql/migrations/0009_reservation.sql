-- Dev servers: a reservation is a job of kind reservation; beside it stands what only a dev server has. See docs/decisions/0015.

create table reservation (
    job_id      bigint primary key,
    duration_s  integer not null check (duration_s > 0),   -- as asked
    ask         jsonb not null default '{}',               -- all else that was asked, so that the queue loses none of it
    launched_at timestamptz,                               -- when all members were ready: the clock starts
    expires_at  timestamptz,                               -- as users see it; the nodes are held for the grace more
    extensions  integer not null default 0,
    extended_s  integer not null default 0,
    extended_at timestamptz,
    stale_files boolean not null default false,            -- files of warnings that an extension made untrue are still there
    check ((launched_at is null) = (expires_at is null))
);

-- A warning before an end: of a level of minutes, once per end that was set. sent_at null: not delivered yet.
create table reservation_warning (
    job_id     bigint not null,
    expires_at timestamptz not null,
    minutes    integer not null,
    due_at     timestamptz not null,
    sent_at    timestamptz,
    primary key (job_id, expires_at, minutes)
);
