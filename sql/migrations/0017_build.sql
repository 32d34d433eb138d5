-- Images of dev servers that are built from a Dockerfile: what was asked for, and how far it is. See docs/decisions/0022.

create type build_state as enum ('queued', 'building', 'completed', 'failed');

-- One image: of a context, for a repository that it is pushed to. The same context is the same build, whoever asks.
create table build (
    id          bigint generated always as identity primary key,
    digest      text not null,                      -- of the context, as odc packs it, and its Dockerfile's name: SHA-256
    target      text not null,                      -- the repository
    dockerfile  text not null,                      -- its name in the context
    state       build_state not null default 'queued',
    asked_by    text not null,                      -- who last asked for it to be built
    asked_uid   integer not null,
    asked_at    timestamptz not null,
    attempt     integer not null default 0,         -- the number of its Kubernetes Job; each is new
    lost        integer not null default 0,         -- Jobs that were gone without an end, since it was asked for
    started_at  timestamptz,
    made_at     timestamptz,                        -- when this attempt's Job was there
    ended_at    timestamptz,
    image       text,                               -- by digest
    step        text,                               -- what it is at
    error       text,
    log         text not null default '',           -- the end of it
    unique (digest, target),
    check ((state = 'completed') = (image is not null)),
    check (state <> 'building' or started_at is not null)
);
create index build_going on build (id) where state = 'building';

-- What it is built from; gone when it was, or after a day in which nobody waited for it.
create table build_context (
    build_id bigint primary key references build,
    content  bytea not null,                        -- tar, gzip
    uid      integer not null,                      -- who brought it
    at       timestamptz not null
);
alter table build_context alter column content set storage external;
create index build_context_uid on build_context (uid, at);

-- Who has the context, and so may know of the build.
create table build_asker (
    build_id bigint not null references build,
    uid      integer not null,
    primary key (build_id, uid)
);

alter table reservation add column build_id bigint;
-- Those who wait for an image, among all that wait.
create index pending_image on pending (job_id) where lacks = 'image';
create index reservation_build on reservation (build_id, job_id) where build_id is not null;
