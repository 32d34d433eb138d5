-- Order policies, protection depth, priority weights; and what a shape may ask for beyond amounts.

-- How the jobs of a partition are ordered. ordering: a formula of sql/functions/plan/_score_class.sql.
create table policy (
    name        text primary key check (name <> ''),
    ordering    text not null check (ordering in ('fifo', 'multifactor', 'sjf', 'saf', 'wfp3', 'odc')),
    max_wait_s  integer check (max_wait_s > 0),         -- who waited longer comes first, first come, first served
    backfill    text not null default 'order' check (backfill in ('order', 'fifo', 'sjbf', 'safbf')),
    plan_depth  integer not null default 1 check (plan_depth between 0 and 1000000)
);
insert into policy (name, ordering, max_wait_s, backfill, plan_depth) values
    ('fifo', 'fifo', null, 'order', 1), ('multifactor', 'multifactor', null, 'order', 1),
    ('sjf', 'sjf', 172800, 'order', 1), ('saf', 'saf', 172800, 'order', 1), ('wfp3', 'wfp3', null, 'order', 1),
    ('odc', 'odc', null, 'sjbf', 2);

-- tier: partitions that share nodes are served by tier, highest first. placement: pack takes the fullest node
-- that fits, spread the emptiest.
alter table partition
    add column policy text not null default 'odc' references policy,
    add column placement text not null default 'pack' check (placement in ('pack', 'spread')),
    add column tier integer not null default 1 check (tier between 0 and 65533);

create table priority_weight (
    factor text primary key check (factor in ('age', 'size', 'fairshare', 'qos', 'partition')),
    weight integer not null check (weight between 0 and 1000000)
);
insert into priority_weight (factor, weight) values
    ('age', 1000), ('size', 100), ('fairshare', 10000), ('qos', 10000), ('partition', 1000);

create table priority_setting (
    one         boolean primary key default true check (one),
    max_age_s   integer not null default 604800 check (max_age_s > 0),    -- the age factor is 1 from here on
    half_life_s integer not null default 604800 check (half_life_s > 0)   -- used time counts half after this
);
insert into priority_setting default values;

-- node_count_max: null means node_count. switches: wishes for at most so many topology blocks, until the job has
-- waited switches_wait_s (null: for ever). booking_id: runs inside that booking only.
alter table shape
    add column node_count_max  integer check (node_count_max >= node_count),
    add column switches        integer check (switches > 0),
    add column switches_wait_s integer check (switches_wait_s >= 0),
    add column booking_id      integer;
drop index shape_value;
create unique index shape_value on shape (
    node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, exclusive,
    partition_ids, constraint_expr, node_list, exclude_nodes,
    node_count_max, switches, switches_wait_s, booking_id) nulls not distinct;

-- Layers of the network a node hangs on, outermost first; the last is its block.
alter table node add column topology text[] not null default '{}';

-- A class of pending jobs has equal columns up to nice, and keeps its order of queue time.
drop index pending_order;
create index pending_class on pending (
    shape_id, time_limit_s, uid, account_id, qos_id, nice, queued_at, job_id) include (open_count) where ready;

-- Classes of pending jobs that the last pass passed over because of a limit.
create table limited (
    shape_id     integer not null,
    time_limit_s integer not null,
    uid          integer not null,
    account_id   integer not null,
    qos_id       integer not null,
    reason       text not null,
    primary key (shape_id, time_limit_s, uid, account_id, qos_id)
);
