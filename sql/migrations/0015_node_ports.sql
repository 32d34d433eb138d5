-- The way to a dev server by a port of its nodes, where an operator wants that.

create table box_port (
    job_id    bigint primary key,
    attempt   integer not null,
    port      integer not null check (port between 1 and 65535),
    addresses text[] not null                -- of its nodes, by rank
);
