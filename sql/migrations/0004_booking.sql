-- Bookings: nodes set aside for a window to come. Licences: counted goods of the whole cluster that jobs hold.

create type booking_kind as enum ('maintenance', 'use');
create type booking_state as enum ('PLANNED', 'ACTIVE', 'ENDED', 'DELETED');
create type booking_repeat as enum ('none', 'daily', 'weekly', 'weekdays');

-- One occurrence lasts from starts_at for duration_s; it comes again at the same time of day, UTC, as repeats says,
-- and none begins after repeats_until (null: for ever). node_list, gpu_type, partition_id and all_nodes say which
-- nodes may be chosen, node_count how many of them (null: every one); booking_node has those that were.
-- Owners of a use booking: uids (by name in user_names) and the users of accounts and of the accounts below.
create table booking (
    id            integer generated always as identity primary key,
    name          text not null check (name ~ '^[A-Za-z0-9._-]{1,100}$'),
    kind          booking_kind not null,
    state         booking_state not null default 'PLANNED',
    state_at      timestamptz not null,
    starts_at     timestamptz not null check (isfinite(starts_at)),
    duration_s    integer not null check (duration_s > 0),
    repeats       booking_repeat not null default 'none',
    repeats_until timestamptz check (repeats_until >= starts_at),
    node_list     text[],
    gpu_type      text references gpu_type,
    partition_id  integer references partition on delete set null,
    all_nodes     boolean not null default false,
    node_count    integer check (node_count > 0),
    user_names    text[] not null default '{}',
    uids          integer[] not null default '{}',
    account_ids   integer[] not null default '{}',
    ignore_running boolean not null default false,  -- made although running jobs reach into it
    comment       text,
    reason        text,                             -- what it lacks, for people
    created_by    text not null,
    created_at    timestamptz not null,
    check (cardinality(uids) = cardinality(user_names)),
    check (kind = 'use' or uids = '{}' and account_ids = '{}'),
    check (repeats <> 'none' or repeats_until is null),
    check (duration_s <= case repeats when 'none' then 2147483647 when 'weekly' then 604800 else 86400 end)
);
create unique index booking_live_name on booking (name) where state in ('PLANNED', 'ACTIVE');
create index booking_name on booking (name, id);

create table booking_node (
    booking_id integer not null references booking on delete cascade,
    node_id    integer not null references node on delete cascade,
    primary key (booking_id, node_id)
);
create index booking_node_node on booking_node (node_id);

create table licence (
    name  text primary key check (name ~ '^[A-Za-z0-9._@/-]{1,100}$'),
    total integer not null check (total >= 0)
);

-- {"name": count, …} of what a job holds while it runs; null: none.
alter table shape add column licences jsonb check (jsonb_typeof(licences) = 'object' and licences <> '{}');
create index shape_licences on shape (id) where licences is not null;
create index shape_booking on shape (booking_id) where booking_id is not null;
drop index shape_value;
create unique index shape_value on shape (
    node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, exclusive,
    partition_ids, constraint_expr, node_list, exclude_nodes,
    node_count_max, switches, switches_wait_s, booking_id, licences) nulls not distinct;
