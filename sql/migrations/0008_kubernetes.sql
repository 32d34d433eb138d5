-- Nodes that others use too, output that outlives its pod, and signals before a limit that the database itself keeps.

-- What of a node is used by what odc does not run, and so not to be had: as pods that others made. In step with node_free,
-- which lacks it: never more than the allocations leave.
alter table node
    add column foreign_gpu_mask bigint not null default 0,
    add column foreign_cpus     integer not null default 0 check (foreign_cpus >= 0),
    add column foreign_mem_mib  integer not null default 0 check (foreign_mem_mib >= 0);
alter table node_past
    add column foreign_gpu_mask bigint,
    add column foreign_cpus     integer,
    add column foreign_mem_mib  integer;

-- The signal before its time limit was sent, by an executor that does not count the time itself.
alter table running add column signalled boolean not null default false;

-- What a member wrote, of executors whose output goes with the member: zlib, of written bytes, of which the middle may be cut.
create table kept_output (
    job_id  bigint not null,
    attempt integer not null,
    rank    integer not null,
    kept_at timestamptz not null,
    written bigint not null,
    content bytea not null,
    primary key (job_id, attempt, rank)
);
alter table kept_output alter column content set storage external;

-- Nodes that eat jobs: see sql/functions/node/README.md.
alter table node_free  add column ended  integer not null default 0;   -- members that have ended on it, since it came or came back
alter table allocation add column strike text;                         -- failed, launch, lost: how its end speaks against its node

-- Of a node, how often a user's script ended in a way that speaks against the node. nths: which of the node's ends these were,
-- the last 20.
create table node_strike (
    node_id       integer not null,
    uid           integer not null,
    script_digest text not null,
    cause         text not null check (cause in ('failed', 'launch', 'lost')),
    at            timestamptz not null,
    job_id        bigint not null,
    nths          integer[] not null,
    primary key (node_id, uid, script_digest, cause)
);
create index node_strike_script on node_strike (script_digest, uid);

-- drained: it takes no jobs; false: it was only told of. canary: number of the one that runs there.
create table node_quarantine (
    node_id      integer primary key,
    since        timestamptz not null,
    evidence     text not null,
    reason       text not null,
    drained      boolean not null,
    failed       integer not null default 0,     -- canaries so far that failed
    try_at       timestamptz not null,
    canary       integer unique,
    canary_until timestamptz
);
create sequence node_canary as integer maxvalue 999999999 cycle;
