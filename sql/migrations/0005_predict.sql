-- Prediction: what run times were like, when pending jobs are expected to start, and how such expectations came out.

-- Jobs that ended and are not learnt from yet, in the order of their ends: a cheap note for the closing transaction.
create table run_time_new (
    seq    bigint generated always as identity,
    job_id bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The last run times of similar jobs, as millionths of their time limit. -1 or 0 in a key: any.
create table run_time (
    uid          integer not null,
    shape_id     integer not null,
    time_limit_s integer not null,
    name_key     bigint not null,
    parts        integer[] not null,              -- newest first
    sorted       integer[] not null,              -- the same, smallest first
    learnt       bigint not null,                 -- how many there ever were
    last_at      timestamptz not null,
    primary key (uid, shape_id, time_limit_s, name_key)
) with (fillfactor = 70);

-- When pending jobs are expected to start, as of the last refresh. Unlogged: the next refresh writes it anew.
create unlogged table eta (
    job_id bigint primary key,
    at     timestamptz not null,
    place  integer not null,                      -- in the order of the queue
    p10    timestamptz,                           -- null: no start in sight
    p50    timestamptz,
    p90    timestamptz,
    exact  boolean not null                       -- protected: it has a planned start
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Expectations that were told, to be scored when the job starts.
create table prediction (
    id         bigint generated always as identity,
    job_id     bigint not null,
    attempt    integer not null,                  -- of the start it foresees
    cause      text not null check (cause in ('submit', 'exact', 'moved')),
    at         timestamptz not null,
    plan_s     integer not null,                  -- what the plan alone said, from then
    p10        timestamptz not null,
    p50        timestamptz not null,
    p90        timestamptz not null,
    exact      boolean not null,
    open       boolean not null default true,     -- not scored yet
    started_at timestamptz,                       -- null and not open: it never started
    primary key (job_id, id)
) partition by range (job_id);
create index prediction_open on prediction (job_id) where open;
create index prediction_at on prediction (at);

-- How plans came out, by how long a wait they told (0: all). In thousandths: (wait + 300 s) / (plan + 300 s).
create table eta_class (
    class   integer primary key,
    ratios  integer[] not null,                   -- newest first
    sorted  integer[] not null,                   -- the same, smallest first
    last_at timestamptz not null                  -- when the newest was told
) with (fillfactor = 70);

-- Sums over scored predictions, by day of the start; what outlives the predictions themselves.
create table eta_day (
    day         date not null,
    cause       text not null,
    scored      bigint not null,
    inside      bigint not null,                  -- started between p10 and p90
    early       bigint not null,                  -- before p10
    late        bigint not null,                  -- after p90
    abs_error_s bigint not null,                  -- of p50
    error_s     bigint not null,                  -- p50 - start: positive when it started earlier
    width_s     bigint not null,                  -- p90 - p10
    primary key (day, cause)
) with (fillfactor = 70);
