-- Job steps: the tasks that srun starts on the nodes of a running job. A new table locks nothing.
create table step (
    job_id      bigint not null,
    attempt     integer not null,
    step        integer not null,             -- 0, 1, … in the order of creation
    key         text not null,                -- of the request: a repeated one finds its step
    name        text not null,
    command     text not null,
    -- Parallel arrays, one element for each node of the step.
    ranks       integer[] not null,           -- the node within the job
    node_names  text[] not null,
    tasks       integer[] not null,
    cpus        integer[] not null,
    gpu_masks   bigint[] not null,
    mem_mib     integer[],                    -- null: it asked for none, and shares the job's
    holds_cpus  boolean not null,             -- no other step may use these CPUs
    holds_gpus  boolean not null,             -- no other step may use these GPUs
    state       job_state not null default 'RUNNING',
    started_at  timestamptz not null,
    ended_at    timestamptz,
    exit_code   integer,                      -- of srun: the highest of its tasks, 128 and the signal if one ended it
    statuses    jsonb,                        -- the tasks by their wait status: {"0": "0-6", "256": "7"}
    detail      text,
    primary key (job_id, attempt, step),
    unique (job_id, attempt, key)
) with (fillfactor = 80);
create index step_running on step (job_id) where state = 'RUNNING';
