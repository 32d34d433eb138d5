-- Disks adopted from gpu-dev. See docs/decisions/0102. Reads disk_snapshot once; the other changes touch only the catalog.

alter table disk
    add column imported_user text,              -- of a disk imported from gpu-dev: its owner and its name there
    add column imported_name text;
create unique index disk_imported on disk (imported_user, imported_name) where imported_user is not null and deleted_at is null;

alter table disk_snapshot
    alter column volume_id drop not null,
    add column source  text,                    -- of an imported one: gpu-dev's volume that it was or is made from
    add column adopted boolean not null default false,      -- gpu-dev made it; odc only adds its tags
    add constraint disk_snapshot_source check (volume_id is not null or source is not null);
create unique index disk_snapshot_saving on disk_snapshot (source) where state in ('wanted', 'pending') and not adopted;

-- A request to list the disks of gpu-dev, or to import them, and its result.
create table disk_import (
    id        bigint generated always as identity primary key,
    uid       integer not null,
    user_name text not null,
    asked_at  timestamptz not null,
    applies   boolean not null,                 -- false: it only lists
    owners    jsonb not null,                   -- gpu-dev's user: odc's user
    users     text[],                           -- only these users of gpu-dev; null: all
    tags      jsonb not null,                   -- names of tags: user, disk, kind
    state     text not null default 'wanted' check (state in ('wanted', 'done', 'refused')),
    disks     jsonb,                            -- the result
    tries     integer not null default 0,
    due_at    timestamptz,
    trouble   text
);
create index disk_import_due on disk_import (due_at) where due_at is not null;
