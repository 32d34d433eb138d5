-- What /metrics counts over all terms: totals that go on where another daemon stopped. See docs/decisions/0023.

-- A total, per metric and label values, in the order of odcd/metrics/families.py. told: the highest that was told of one that
-- is counted of what ended and measured of what runs; null: value is all there is.
create table tally (
    metric text not null,
    labels text[] not null,
    value  bigint not null default 0,
    told   bigint,
    primary key (metric, labels)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- A histogram. counts: per bound of odc._tally_bounds those above the one before; the last is all above the last bound.
create table tally_histogram (
    metric text not null,
    labels text[] not null,
    counts bigint[] not null,
    sum_ms bigint not null,
    primary key (metric, labels)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The last event that is counted, in the order in which events become final.
create table tally_event (
    one      boolean primary key default true check (one),
    xid      xid8 not null default pg_current_xact_id(),
    event_id bigint not null
) with (fillfactor = 50);
insert into tally_event (xid, event_id) values ('0', 0);
