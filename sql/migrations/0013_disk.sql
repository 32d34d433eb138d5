-- Disks of users that outlive their dev servers, and what a job in the queue lacks. See docs/decisions/0019.
-- Locks pending while it is rewritten: a column that is computed cannot be changed in PostgreSQL 16.

-- What a job cannot start without and that is not there yet; until: when that is expected, null: not known.
alter table pending
    drop column ready cascade,
    add column lacks       text check (lacks in ('image', 'disk', 'snapshot')),
    add column lacks_until timestamptz,
    add column lacks_text  text,                -- in words: disks and builds have no past, and this has
    add column lacks_job   bigint,              -- whose that is now
    add column ready       boolean not null generated always as
        (held is null and begun and dependency = 'met' and lacks is null and open_count > 0) stored;
alter table pending_past
    add column lacks       text,
    add column lacks_until timestamptz,
    add column lacks_text  text,
    add column lacks_job   bigint;
create index pending_class on pending (
    shape_id, time_limit_s, uid, account_id, qos_id, nice, queued_at, job_id) include (open_count) where ready;

create table disk (
    id          bigint generated always as identity primary key,
    uid         integer not null,
    user_name   text not null,
    name        text not null,
    size_gib    integer not null,
    origin      bigint,                     -- of a clone: the snapshot it begins with
    made_at     timestamptz not null,
    used_at     timestamptz,                -- when it was last taken
    holder      bigint unique,              -- the job whose it is, until all that was written on it is in a snapshot that began
    fence       bigint not null default 0,  -- how often it was taken
    trouble     text,                       -- why it cannot be used until an operator has looked
    trouble_at  timestamptz,
    deleted_at  timestamptz,
    purge_at    timestamptz,                -- when the snapshots of a deleted one go
    check ((deleted_at is null) = (purge_at is null)),
    check (deleted_at is null or holder is null)
);
create unique index disk_name on disk (uid, name) where deleted_at is null;

alter table reservation add column disk_id bigint;
create index reservation_disk on reservation (disk_id) where disk_id is not null;

-- A volume: the disk while one attempt uses it. Written before the cloud is asked for it, and never used by another attempt.
create table disk_volume (
    id           bigint generated always as identity primary key,
    operation    uuid not null unique default gen_random_uuid(),    -- what the cloud knows the call by: of a database put back, numbers come again
    disk_id      bigint not null,
    job_id       bigint not null,
    attempt      integer not null,
    fence        bigint not null,           -- of the disk when it was taken
    zone         text,                      -- of the node that the placement chose
    size_gib     integer not null,
    snapshot_id  bigint,                    -- what it is made from; null: blank
    cloud_id     text unique,               -- null: the cloud has not answered yet
    state        text not null default 'creating'
        check (state in ('creating', 'available', 'published', 'releasing', 'snapshotting', 'deleting', 'deleted', 'lost')),
    state_at     timestamptz not null,
    made_at      timestamptz not null,      -- when it was wanted
    published_at timestamptz,               -- when pods could mount it
    withdrawn_at timestamptz,               -- when none could any more
    over_at      timestamptz,               -- when its attempt was over
    end_kind     text check (end_kind in ('shutdown', 'cancellation', 'migration')),
    contents     text,                      -- what was on it, as it was listed at the end
    used_bytes   bigint,
    tries        integer not null default 0,
    due_at       timestamptz,               -- when it is to be looked at next; null: nothing is to be done
    trouble      text                       -- of the last try
);
-- Two volumes of one disk are how an empty one comes to be its newest snapshot.
create unique index disk_volume_live on disk_volume (disk_id) where state not in ('deleting', 'deleted', 'lost');
create index disk_volume_due on disk_volume (due_at) where due_at is not null;
create index disk_volume_job on disk_volume (job_id);

create table disk_snapshot (
    id           bigint generated always as identity primary key,
    operation    uuid not null unique default gen_random_uuid(),
    disk_id      bigint not null,
    volume_id    bigint not null,
    kind         text not null check (kind in ('initial', 'shutdown', 'cancellation', 'migration')),
    size_gib     integer not null,
    cloud_id     text unique,
    state        text not null default 'wanted'
        check (state in ('wanted', 'pending', 'completed', 'error', 'deleting', 'deleted')),
    progress     integer,                   -- percent
    asked_at     timestamptz not null,
    completed_at timestamptz,
    contents     text,
    used_bytes   bigint,
    labelled     boolean not null default true,     -- its tags in the cloud tell what this row and its disk do
    tries        integer not null default 0,
    due_at       timestamptz,
    trouble      text
);
-- No second one of a volume while one is being made.
create unique index disk_snapshot_going on disk_snapshot (volume_id) where state in ('wanted', 'pending');
create index disk_snapshot_disk on disk_snapshot (disk_id, id);
create index disk_snapshot_due on disk_snapshot (due_at) where due_at is not null;

-- A user's part of the shared file system: in all dev servers of that user, whatever their disks.
create table shared_storage (
    uid       integer primary key,
    user_name text not null,
    cloud_id  text unique,                  -- of the access point
    asked_at  timestamptz not null,
    published_at timestamptz,
    tries     integer not null default 0,
    due_at    timestamptz,
    trouble   text
);

-- Which odc this is: what it makes in a cloud carries that.
create table server (
    one boolean primary key default true check (one),
    id  uuid not null default gen_random_uuid()
);
insert into server default values;

-- What the cloud has in our name and no row knows. Nothing is done to it but telling.
create table disk_stray (
    cloud_id text primary key,
    kind     text not null check (kind in ('volume', 'snapshot')),
    tags     jsonb not null,
    first_at timestamptz not null,
    seen_at  timestamptz not null
);
