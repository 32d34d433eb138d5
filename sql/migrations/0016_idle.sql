-- Idle dev servers: what a QOS does about them, and how much each was used when it was looked at.

-- Seconds. idle_warn_s: its reservations are looked at, and their users told after so long; 0: they are not. idle_release_s:
-- they end when they were idle for so long; 0: they do not.
alter table qos
    add column idle_warn_s    integer not null default 0 check (idle_warn_s = 0 or idle_warn_s >= 600),
    add column idle_release_s integer not null default 0,
    add check (idle_release_s = 0 or idle_warn_s > 0 and idle_release_s >= idle_warn_s);
alter table qos_past
    add column idle_warn_s    integer not null default 0,
    add column idle_release_s integer not null default 0;

create table box_look (
    job_id     bigint primary key,
    attempt    integer not null,
    at         timestamptz not null,
    good_until timestamptz not null,         -- what was seen then is not known to be so after it
    cpu_s      double precision not null,    -- CPU time of all its processes, ever
    idle_since timestamptz,                  -- null: in use
    told_at    timestamptz                   -- when its user was told that it is idle
);
