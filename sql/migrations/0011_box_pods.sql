-- Dev servers in pods: their keys, how far their preparation is, and how often their containers began anew.

-- Made once, so that a box that is started again, or whose container is, has the same. Gone when the reservation is over.
create table box_key (
    job_id      bigint primary key,
    host_key    text not null,              -- private, as OpenSSH keeps it
    host_public text not null,              -- its line for known_hosts, without the host
    gang_key    text not null,              -- by which its members reach one another
    gang_public text not null,
    made_at     timestamptz not null
);

-- How far one member of an attempt is. at: when it came there first; told_at: when it was last said to be there.
create table box_phase (
    job_id  bigint not null,
    attempt integer not null,
    rank    integer not null,
    phase   text not null check (phase in ('scheduling', 'init', 'image_pull', 'ssh', 'gang_barrier')),
    at      timestamptz not null,
    told_at timestamptz not null,
    message text,
    primary key (job_id, attempt, rank, phase)
);

-- An end of a member's container after which it began anew, in its place.
create table box_restart (
    job_id   bigint not null,
    attempt  integer not null,
    rank     integer not null,
    ended_at timestamptz not null,
    oom      boolean not null,
    detail   text,
    primary key (job_id, attempt, rank, ended_at)
);
