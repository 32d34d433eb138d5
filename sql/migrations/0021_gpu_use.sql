-- What the GPUs of jobs did: of every ended attempt for ever, of live ones now.

-- From where the use of GPUs is known, and when a GPU that is held counts as idle; the leader tells it at its start.
-- source null: it is not known, and nothing below is written.
create table gpu_meter (
    one          boolean primary key default true check (one),
    source       text check (source in ('prometheus', 'nvml')),
    idle_ratio   double precision not null default 0.05 check (idle_ratio between 0 and 1),
    idle_after_s integer not null default 900 check (idle_after_s > 0)
);
insert into gpu_meter default values;

-- The GPUs that were seen, by their place on the node.
create table gpu (
    node_id   integer not null,
    gpu_index integer not null,
    uuid      text not null,
    model     text,
    seen_at   timestamptz not null,
    primary key (node_id, gpu_index)
);
create index gpu_uuid on gpu (uuid);

-- One row per attempt that held GPUs and ran. Written when the attempt ends, as a debt: what its GPUs did from running_at to
-- ended_at is still to be asked; paid once, by stored_at. By NVML it begins while the attempt runs, and adds up.
create table gpu_use (
    job_id       bigint not null,
    attempt      integer not null,
    gpus         integer not null check (gpus > 0),
    running_at   timestamptz not null,
    ended_at     timestamptz,                        -- null: it runs
    held_s       double precision generated always as (extract(epoch from ended_at - running_at)) stored,
    covered_s    double precision not null default 0, -- of held_s: how long its GPUs were seen, in the mean
    busy_gpu_s   double precision not null default 0, -- seconds of full use, of all its GPUs together
    mem_peak_mib integer,                            -- of its fullest GPU
    energy_j     double precision,
    source       text not null,
    gpu_uuids    text[] not null default '{}',
    seen_until   timestamptz,                        -- by NVML: what was seen to then is in the sums
    again_at     timestamptz,                        -- not to be asked before
    gave_up      text,                               -- why more cannot be known
    stored_at    timestamptz,                        -- null: it runs, or is owed
    primary key (job_id, attempt)
);
create index gpu_use_owed on gpu_use (ended_at) where stored_at is null;

-- What the GPUs of a running job do. Rows come at every look, and go with the attempt.
create table gpu_now (
    job_id       bigint primary key,
    attempt      integer not null,
    at           timestamptz not null,
    good_until   timestamptz not null,               -- what was seen then is not known to be so after it
    util_ratio   double precision,                   -- mean of its GPUs
    mem_used_mib integer,                            -- of all its GPUs together
    idle         jsonb not null default '{}',        -- its GPUs that rest, by UUID: since when
    idle_since   timestamptz                         -- of the one that rests longest; null: none does
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
