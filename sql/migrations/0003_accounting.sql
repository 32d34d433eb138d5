-- Accounts, associations, QOS, limits, and what was used. Everything works with none of it configured:
-- account default, QOS normal, no limit, and users nobody has heard of.

-- shares: of what its parent has, against its siblings. qos_ids: what its users may use; null: as its parent, at the
-- top every QOS that is not restricted. Rows stay when an account is deleted, for the jobs of the past.
alter table account
    add column description    text,
    add column organisation   text,
    add column shares         integer not null default 1 check (shares between 0 and 1000000),
    add column default_qos_id integer,
    add column qos_ids        integer[],
    add column deleted_at     timestamptz,
    add check (parent <> id);
create index account_parent on account (parent) where parent is not null;

-- preempts: whose jobs it may end. preempt_mode, exempt_s (its jobs run at least so long) and grace_s (from the
-- signal to the kill) say what happens to its own jobs. restricted: only for accounts and users that name it.
-- deny_on_limit: a job that is above a limit by itself is refused; else it waits until the limit is changed.
alter table qos
    add column description   text,
    add column restricted    boolean not null default false,
    add column deny_on_limit boolean not null default true,
    add column usage_factor  numeric(9, 3) not null default 1 check (usage_factor between 0 and 1000),
    add column preempts      integer[] not null default '{}',
    add column preempt_mode  text not null default 'requeue' check (preempt_mode in ('requeue', 'cancel')),
    add column exempt_s      integer not null default 0 check (exempt_s >= 0),
    add column grace_s       integer not null default 0 check (grace_s between 0 and 86400),
    add column deleted_at    timestamptz,
    add check (id <> all (preempts)),
    add check (priority between 0 and 1000000000);

-- A user in an account; with partition_id, only in that partition.
create table association (
    id             integer generated always as identity primary key,
    account_id     integer not null references account,
    uid            integer not null,
    user_name      text not null,
    partition_id   integer references partition on delete cascade,
    shares         integer not null default 1 check (shares between 0 and 1000000),
    is_default     boolean not null default false,     -- the account of jobs that name none
    default_qos_id integer references qos,
    qos_ids        integer[],                          -- null: those of the account
    made_at        timestamptz not null
);
create unique index association_value on association (account_id, uid, partition_id) nulls not distinct;
create unique index association_one_default on association (uid) where is_default;
create index association_user on association (uid);

-- Coordinators may change the users of their accounts and of the accounts below.
create table coordinator (
    account_id integer not null references account,
    uid        integer not null,
    user_name  text not null,
    primary key (account_id, uid)
);

-- One limit a row. scope_id: of qos, account, association ('user') or partition.
-- per: group (all its jobs together; of an account those of the accounts below, too), each user, each account, or job.
create table resource_limit (
    scope    text not null check (scope in ('qos', 'account', 'user', 'partition')),
    scope_id integer not null,
    per      text not null check (per in ('group', 'user', 'account', 'job')),
    what     text not null check (what in ('jobs', 'submitted', 'gpus', 'gpu_minutes', 'cpus', 'nodes', 'wall_s')),
    value    bigint not null check (value between 0 and 1000000000000),
    primary key (scope, scope_id, per, what),
    check (case per when 'job' then what not in ('jobs', 'submitted') else what <> 'wall_s' end),
    check (what <> 'gpu_minutes' or per = 'job'
           or per = 'group' and scope <> 'partition' or per = 'user' and scope = 'account'),
    check (case scope when 'account' then per <> 'account' when 'user' then per in ('group', 'job') else true end)
);

-- What ended attempts used, per account, user and QOS. used_*: times the QOS's usage factor, decayed to used_at;
-- total_gpu_ms: neither. A row is made at the first submit, so that fair share knows who waits.
create table usage (
    account_id   integer not null,
    uid          integer not null,
    qos_id       integer not null,
    user_name    text not null,
    used_ms      bigint not null default 0 check (used_ms >= 0),       -- GPU-milliseconds as billed: CPUs count, too
    used_gpu_ms  bigint not null default 0 check (used_gpu_ms >= 0),
    total_gpu_ms bigint not null default 0 check (total_gpu_ms >= 0),
    used_at      timestamptz not null,
    primary key (account_id, uid, qos_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- enforce: only users with an association may submit. cpus_per_gpu: so many CPUs are billed as one GPU.
create table account_setting (
    one          boolean primary key default true check (one),
    enforce      boolean not null default false,
    cpus_per_gpu integer not null default 24 check (cpus_per_gpu between 1 and 100000)
);
insert into account_setting default values;

-- What an attempt held; null: it ended before this was kept.
alter table attempt
    add column gpus integer,
    add column cpus integer;

-- For limits on submitted jobs, and for those who ask for their own.
create index pending_user on pending (uid);

-- Those who have jobs already: fair share and limits count them from here on.
insert into usage (account_id, uid, qos_id, user_name, used_at)
select distinct on (p.account_id, p.uid, p.qos_id) p.account_id, p.uid, p.qos_id, j.user_name, p.queued_at
  from (select job_id, account_id, uid, qos_id, queued_at from pending
         union all select job_id, account_id, uid, qos_id, queued_at from running) as p
  join job as j on j.id = p.job_id
 order by p.account_id, p.uid, p.qos_id, p.queued_at;
