-- The queue: hot tables (pending, running, allocation, node_free) hold live work only and are narrow;
-- cold ones (job, attempt, event) are written at submit and at the end, and partitioned by id.
-- Unlimited time is 2147483647 seconds and an end of 'infinity'. A GPU is a bit of a bigint mask.

create type job_kind as enum ('batch', 'reservation');
create type job_state as enum (
    'PENDING', 'CONFIGURING', 'RUNNING', 'COMPLETING',
    'COMPLETED', 'FAILED', 'TIMEOUT', 'CANCELLED', 'NODE_FAIL', 'OUT_OF_MEMORY', 'PREEMPTED', 'DEADLINE', 'BOOT_FAIL');
create type job_hold as enum ('user', 'admin');
create type dependency_kind as enum ('after', 'afterany', 'afterok', 'afternotok', 'aftercorr', 'singleton');
create type dependency_state as enum ('waiting', 'met', 'never');
create type node_state as enum ('UP', 'DRAIN', 'DOWN');
create type partition_state as enum ('UP', 'DOWN', 'DRAIN', 'INACTIVE');
create type member_state as enum ('starting', 'running', 'ended');
-- Why the database wants a running job ended; decides its terminal state, or a requeue.
create type end_intent as enum (
    'cancel', 'requeue', 'requeue_hold', 'timeout', 'deadline', 'node_fail', 'preempt', 'member_failed');

-- Leadership: the one row that every function which plans, applies or settles holds for share.
create table term (
    one         boolean primary key default true check (one),
    term        bigint not null,
    beat        bigint not null,
    backend_pid integer,
    holder      text,
    host        text,
    taken_at    timestamptz
) with (fillfactor = 50);
insert into term (term, beat) values (0, 0);

-- The one machine whose processes the local executor runs for this database.
create table local_host (
    one        boolean primary key default true check (one),
    machine_id text not null,
    host_name  text not null
);

create table gpu_type (
    name              text primary key,
    label             text not null,
    gpus_per_node     integer not null check (gpus_per_node between 0 and 62),
    gpu_mem_mib       integer,
    cpus_per_node     integer not null check (cpus_per_node > 0),
    mem_per_node_mib  integer not null check (mem_per_node_mib > 0),
    efa_per_node      integer not null default 0,
    instance_type     text
);
insert into gpu_type (name, label, gpus_per_node, gpu_mem_mib, cpus_per_node, mem_per_node_mib, efa_per_node, instance_type) values
    ('b200',     'NVIDIA B200', 8, 196608, 192, 2097152,  8, 'p6-b200.48xlarge'),
    ('h200',     'NVIDIA H200', 8, 144384, 192, 2097152, 16, 'p5en.48xlarge'),
    ('h100',     'NVIDIA H100', 8,  81920, 192, 2097152, 32, 'p5.48xlarge'),
    ('a100',     'NVIDIA A100', 8,  40960,  96, 1179648,  4, 'p4d.24xlarge'),
    ('a10g',     'NVIDIA A10G', 4,  24576,  48,  196608,  1, 'g5.12xlarge'),
    ('l4',       'NVIDIA L4',   4,  24576,  48,  196608,  1, 'g6.12xlarge'),
    ('t4',       'NVIDIA T4',   4,  16384,  48,  196608,  0, 'g4dn.12xlarge'),
    ('t4-small', 'NVIDIA T4, one', 1, 16384, 4,   16384,  0, 'g4dn.xlarge'),
    ('cpu-x86',  'CPU only, x86-64', 0, null, 16,  32768,  0, 'c7i.4xlarge'),
    ('cpu-arm',  'CPU only, arm64',  0, null, 16,  32768,  0, 'c7g.4xlarge');

-- Nodes that differ in nothing a job can ask for; odc.regroup_nodes() keeps it. The planner walks groups.
create table node_group (
    id            integer generated always as identity primary key,
    gpu_type      text not null references gpu_type,
    gpus          integer not null,
    cpus          integer not null,
    mem_mib       integer not null,
    efa_domain    text,
    features      text[] not null,
    partition_ids integer[] not null
);
create unique index node_group_value on node_group (
    gpu_type, gpus, cpus, mem_mib, efa_domain, features, partition_ids) nulls not distinct;

create table node (
    id         integer generated always as identity primary key,
    name       text not null unique,
    gpu_type   text not null references gpu_type,
    gpus       integer not null check (gpus between 0 and 62),
    cpus       integer not null check (cpus > 0),
    mem_mib    integer not null check (mem_mib > 0),
    zone       text,
    efa_domain text,
    features   text[] not null default '{}',
    state      node_state not null default 'UP',
    reason     text,
    reason_by  text,
    state_at   timestamptz not null,
    declared   boolean not null default false
);

-- What of a node is free now. Held in step with allocation by the functions of plan/ and settle/;
-- odc.check_books() recounts it.
create table node_free (
    node_id  integer primary key references node on delete cascade,
    group_id integer not null references node_group,
    up       boolean not null,                    -- may start jobs: state UP
    gpu_mask bigint not null,
    gpus     integer not null check (gpus >= 0),
    cpus     integer not null check (cpus >= 0),
    mem_mib  integer not null check (mem_mib >= 0),
    jobs     integer not null default 0 check (jobs >= 0)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table partition (
    id                    integer generated always as identity primary key,
    name                  text not null unique,
    state                 partition_state not null default 'UP',
    is_default            boolean not null default false,
    all_nodes             boolean not null default false,
    max_time_limit_s      integer check (max_time_limit_s > 0),
    default_time_limit_s  integer check (default_time_limit_s > 0),
    max_nodes             integer check (max_nodes > 0),
    def_mem_per_cpu_mib   integer check (def_mem_per_cpu_mib > 0)
);
create unique index partition_one_default on partition (is_default) where is_default;
insert into partition (name, is_default, all_nodes, max_time_limit_s, default_time_limit_s)
values ('main', true, true, 30 * 86400, 86400);

create table partition_node (
    partition_id integer not null references partition on delete cascade,
    node_id      integer not null references node on delete cascade,
    primary key (partition_id, node_id)
);

create table account (
    id     integer generated always as identity primary key,
    name   text not null unique,
    parent integer references account
);
insert into account (name) values ('default');

create table qos (
    id       integer generated always as identity primary key,
    name     text not null unique,
    priority integer not null default 0
);
insert into qos (name) values ('normal');

-- Scripts and environments, once by content; the digest is SHA-256, hex.
create table job_text (
    digest  text primary key,
    content text not null
);
alter table job_text alter column content set storage external;

-- What jobs ask for, once by value. gpu_type null: any type of the partitions.
create table shape (
    id                integer generated always as identity primary key,
    partition_ids     integer[] not null,
    node_count        integer not null check (node_count > 0),
    gpus_per_node     integer not null check (gpus_per_node >= 0),
    gpu_type          text references gpu_type,
    cpus_per_node     integer not null check (cpus_per_node > 0),
    mem_per_node_mib  integer not null check (mem_per_node_mib >= 0),
    exclusive         boolean not null,
    constraint_expr   text,
    node_list         text[],
    exclude_nodes     text[]
);
create unique index shape_value on shape (
    node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, exclusive,
    partition_ids, constraint_expr, node_list, exclude_nodes) nulls not distinct;

create sequence job_id_seq;

-- One row per job, for ever: written at submit, and once more when it ends (state is null until then).
-- Of an array, a row is an element (array_task_id) or the range of its tasks that wait (pending.tasks)
-- or were cancelled unstarted (array_tasks).
create table job (
    id              bigint not null,
    kind            job_kind not null default 'batch',
    array_job_id    bigint,
    array_task_id   integer,
    array_tasks     text,
    name            text not null,
    user_name       text not null,
    uid             integer not null,
    gid             integer not null,
    account_id      integer not null,
    qos_id          integer not null,
    partition_ids   integer[] not null,
    shape_id        integer not null,
    nice            integer not null default 0,
    submitted_at    timestamptz not null,
    begin_at        timestamptz,
    deadline_at     timestamptz,
    time_limit_s    integer not null,
    dependency      text,
    array_throttle  integer,
    requeue         boolean not null,
    work_dir        text not null,
    stdin           text,
    stdout          text,
    stderr          text,
    open_mode       text not null default 'truncate',
    umask           integer not null,
    signal_number   integer,
    signal_before_s integer,
    signal_batch    boolean not null default false,
    script_digest   text not null,
    environment_digest text not null,
    args            text[] not null default '{}',
    comment         text,
    submit_host     text,
    -- Task layout and what else the job's environment tells: ntasks, ntasks_per_node, cpus_per_task,
    -- mem_per_cpu_mib, mem_per_gpu_mib, gpus_spec, submit_line; kept as asked, planned by shape.
    options         jsonb not null default '{}',
    -- written when the job ends
    state           job_state check (state >= 'COMPLETED'),
    reason          text,
    end_detail      text,                         -- what the executor said of the end, for people
    partition_id    integer,
    attempt         integer,
    eligible_at     timestamptz,
    started_at      timestamptz,
    ended_at        timestamptz,
    node_names      text[],
    exit_code       integer,
    signal          integer,
    ended_by        text,
    primary key (id)
) partition by range (id);
create index job_array on job (array_job_id, array_task_id) where array_job_id is not null;

-- Terminal states are final. The function's present version is in sql/functions/settle/.
create function _refuse_change_of_ended() returns trigger language plpgsql as $$ begin return null; end; $$;
create trigger job_end_is_final before update on job
    for each row when (old.state is not null and (new.state, new.ended_at) is distinct from (old.state, old.ended_at))
    execute function _refuse_change_of_ended();

create table array_job (
    job_id        bigint primary key,
    task_min      integer not null,
    task_max      integer not null,
    task_count    integer not null,
    task_step     integer not null,
    throttle      integer,
    running       integer not null default 0,
    started       integer not null default 0,  -- tasks that have started at least once
    ended_ok      integer not null default 0,
    ended_not_ok  integer not null default 0
) with (fillfactor = 70);

create table pending (
    job_id         bigint primary key,
    shape_id       integer not null,
    uid            integer not null,
    account_id     integer not null,
    qos_id         integer not null,
    nice           integer not null,
    queued_at      timestamptz not null,
    time_limit_s   integer not null,
    attempt        integer not null default 1,    -- the number its next start will have
    held           job_hold,
    begin_at       timestamptz,
    begun          boolean not null default true, -- begin_at has passed, or there is none
    deadline_at    timestamptz,
    dependency     dependency_state not null default 'met',
    dependency_any boolean not null default false,
    eligible_at    timestamptz,
    reason         text,                          -- Slurm's reason word, where not computed
    array_job_id   bigint,
    tasks          int4multirange,                -- of an array: the tasks that wait
    closed_tasks   int4multirange,                -- those of them that aftercorr keeps closed
    open_count     integer not null default 1,    -- how many may start now: open tasks within the throttle
    ready          boolean not null generated always as
        (held is null and begun and dependency = 'met' and open_count > 0) stored
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 500);
create index pending_order on pending (shape_id, nice, queued_at, job_id) include (time_limit_s, open_count) where ready;
create index pending_array on pending (array_job_id) where array_job_id is not null;
create index pending_begin on pending (begin_at) where not begun;
create index pending_deadline on pending (deadline_at) where deadline_at is not null;

create table running (
    job_id       bigint primary key,
    attempt      integer not null,
    state        job_state not null check (state in ('CONFIGURING', 'RUNNING', 'COMPLETING')),
    shape_id     integer not null,
    partition_id integer not null,
    uid          integer not null,
    account_id   integer not null,
    qos_id       integer not null,
    nice         integer not null,
    queued_at    timestamptz not null,
    eligible_at  timestamptz,
    deadline_at  timestamptz,
    array_job_id bigint,
    started_at   timestamptz not null,            -- capacity is held from here
    running_at   timestamptz,                     -- every member has started
    time_limit_s integer not null,
    ends_at      timestamptz not null,
    node_count   integer not null,
    live_members integer not null,
    exit_code    integer,                         -- of the worst member so far
    exit_signal  integer,
    exit_cause   text,                            -- timeout, oom, node_fail, start_failed, lost: what the executor saw
    exit_detail  text,
    exited_at    timestamptz,                     -- when its last member so far ended
    intent       end_intent,
    intent_by    text,
    intent_at    timestamptz,
    stop_sent_at timestamptz,
    sent_ends_at timestamptz                      -- the end the executor was told
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table allocation (
    job_id      bigint not null,
    rank        integer not null,
    node_id     integer not null,                 -- no foreign key: nodes stay, and its check would cost a third of a pass
    gpu_mask    bigint not null,
    gpus        integer not null,
    cpus        integer not null,
    mem_mib     integer not null,
    ends_at     timestamptz not null,
    state       member_state not null default 'starting',
    exit_code   integer,
    exit_signal integer,
    primary key (job_id, rank)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table dependency (
    job_id        bigint not null,                -- who waits
    ord           integer not null,
    kind          dependency_kind not null,
    target_id     bigint,                         -- a job, or an array as a whole; null for singleton
    target_task   integer,                        -- an element of array target_id
    delay_s       integer not null default 0,     -- after:ID+MIN
    due_at        timestamptz,                    -- when a started target's delay is over
    name_key      bigint,                         -- singleton: hash of uid and name
    state         dependency_state not null default 'waiting',
    primary key (job_id, ord)
);
create index dependency_target on dependency (target_id) where state = 'waiting';
create index dependency_due on dependency (due_at) where state = 'waiting' and due_at is not null;
create index dependency_singleton on dependency (name_key) where state = 'waiting' and kind = 'singleton';

-- One row per ended attempt.
create table attempt (
    job_id     bigint not null,
    attempt    integer not null,
    state      job_state not null,
    started_at timestamptz not null,
    running_at timestamptz,
    ended_at   timestamptz not null,
    node_names text[] not null,
    exit_code  integer,
    signal     integer,
    reason     text,
    requeued   boolean not null,
    primary key (job_id, attempt)
) partition by range (job_id);

-- Who did what to what, and why. xid lets a reader wait out transactions that commit out of id order.
create table event (
    id      bigint not null generated always as identity,
    xid     xid8 not null default pg_current_xact_id(),
    at      timestamptz not null,
    kind    text not null,
    actor   text not null,
    job_id  bigint,
    node_id integer,
    detail  jsonb not null default '{}',
    primary key (id)
) partition by range (id);
create index event_job on event (job_id, id) where job_id is not null;
-- The order in which events became final: see odc.events_after.
create index event_final on event (xid, id);

create table pass (
    id             bigint generated always as identity primary key,
    term           bigint not null,
    at             timestamptz not null,
    last_event_id  bigint,
    looked         integer not null,
    started        integer not null,
    took_ms        real not null
);

-- Planned starts of the last pass: the protected head of each set of overlapping nodes.
create table planned (
    job_id           bigint primary key,
    pass_id          bigint not null,             -- the pass that last moved it
    planned_start_at timestamptz,                 -- null: no end in sight (nodes down, unlimited jobs)
    node_names       text[] not null,
    fitting          integer not null,            -- nodes that fit one member now
    detail           text not null
);

-- Why jobs of a shape did not start in the last pass that looked at them.
create table refusal (
    shape_id    integer primary key,
    reason      text not null,
    detail      text not null,
    head_job_id bigint                            -- the protected job they stand behind, if any
);

create table idempotency (
    uid      integer not null,
    key      text not null,
    digest   text not null,
    job_ids  bigint[] not null,
    made_at  timestamptz not null,
    primary key (uid, key)
);
create index idempotency_made on idempotency (made_at);

create table api_key (
    digest     text primary key,
    user_name  text not null,
    uid        integer not null,
    gid        integer not null,
    made_at    timestamptz not null,
    expires_at timestamptz not null
);
