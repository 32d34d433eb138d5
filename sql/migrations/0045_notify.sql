-- Notifications by mail and webhook. New tables lock nothing.

-- The notifications that a job's user asked for at submit. An array has one row, under its own id.
create table job_mail (
    job_id      bigint primary key,
    kinds       text[] not null,              -- of odc._notification_kinds
    address     text not null
);

-- One per user.
create table webhook (
    uid         integer primary key,
    user_name   text not null,
    url         text not null,                -- a secret: many services accept messages from anyone who knows it
    kinds       text[] not null,
    set_at      timestamptz not null
);

-- What the leader told the database about its settings; one row.
create table notify_state (
    single      boolean primary key default true check (single),
    mail        boolean not null default false,   -- it can send mail
    per_hour    integer not null default 1000,    -- notifications of one user
    checked_at  timestamptz,                      -- time limits were compared until then
    dropped     bigint not null default 0         -- notifications beyond the limit, of all users, ever
);
insert into notify_state default values;

-- How much of the limit each user has used in an hour.
create table notify_use (
    uid         integer primary key,
    hour        timestamptz not null,
    taken       integer not null,
    dropped     integer not null
);

create table outbox (
    id          bigint generated always as identity primary key,
    created_at  timestamptz not null,
    uid         integer not null,
    user_name   text not null,
    channel     text not null check (channel in ('mail', 'webhook')),
    address     text check ((address is not null) = (channel = 'mail')),
    kind        text not null,
    job_id      bigint,
    facts       jsonb not null,
    tries       integer not null default 0,
    next_at     timestamptz,                  -- not tried before; null: sent, or given up
    sent_at     timestamptz,
    failed_at   timestamptz,                  -- it was given up
    trouble     text                          -- why the last try failed
) with (fillfactor = 80);
create index outbox_due on outbox (channel, next_at, id) where next_at is not null;
create index outbox_waiting on outbox (uid, channel, id) where next_at is not null;
create index outbox_job on outbox (job_id) where job_id is not null;
create index outbox_done on outbox (created_at);
