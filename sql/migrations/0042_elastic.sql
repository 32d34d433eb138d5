-- Elastic groups: Auto Scaling groups whose number of nodes odcd changes. New tables lock nothing.

create table elastic_group (
    name        text primary key,             -- of the Auto Scaling group
    gpu_type    text not null,
    -- The size of its next node: that of its newest node, or an estimate by the type until it had one.
    gpus        integer not null,
    cpus        integer not null,
    mem_mib     integer not null,
    tmp_mib     integer not null,
    zone        text,
    efa_domain  text,
    features    text[] not null,
    topology    text[] not null default '{}',
    learned     boolean not null default false,   -- it had a node
    min_nodes   integer not null check (min_nodes >= 0),
    max_nodes   integer not null check (max_nodes >= min_nodes),
    cooldown    interval not null,            -- between two requests for more nodes
    idle        interval not null,            -- how long a node is empty until it is removed
    boot        interval not null,            -- how long a node takes to join
    desired     integer not null,             -- as AWS last reported it
    wanted      integer,                      -- what AWS is to be asked for; null: nothing
    wanted_at   timestamptz,
    grown_at    timestamptz,                  -- the last request for more nodes
    short_since timestamptz,                  -- AWS has had fewer instances than desired since then; null: it has them
    failures    integer not null default 0,   -- since the last instance came
    failure     text,
    retry_at    timestamptz                   -- no nodes are requested before then
);

create table elastic_instance (
    instance_id text primary key,
    group_name  text not null references elastic_group on delete cascade,
    node_id     integer references node,      -- null: it has not joined the cluster
    seen_at     timestamptz not null,
    busy_at     timestamptz not null,         -- when its node was last in use
    ended       integer not null default 0,   -- node_free.ended at that moment
    -- IN: in use or idle; LEAVING: drained, may still return; SENT: AWS was, or may have been, asked to end it.
    state       text not null default 'IN' check (state in ('IN', 'LEAVING', 'SENT')),
    keep_until  timestamptz                   -- it could not be removed, and is not tried again before then
);
create unique index elastic_instance_node on elastic_instance (node_id);
create index elastic_instance_group on elastic_instance (group_name);

-- Pending jobs that wait for a new node.
create table elastic_need (
    job_id      bigint primary key,
    group_name  text not null references elastic_group on delete cascade
);

-- Nodes that were removed with their instance; lists leave them out while they are down.
create table elastic_gone (
    node_id     integer primary key references node
);
