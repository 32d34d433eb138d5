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
