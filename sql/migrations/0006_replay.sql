-- The past: what rows were before they changed or went. A table with a past has a partner <table>_past; the triggers
-- that fill it and the views that read it are made at every install by odc._build_past.
-- Locks pending and running for an instant: both get columns with a default that rewrites nothing.

-- When a row came. Rows that are there at the upgrade count as having been there always.
alter table pending
    add column born_at  timestamptz not null default '-infinity',
    add column born_xid xid8 not null default pg_current_xact_id();
alter table running
    add column born_xid xid8 not null default pg_current_xact_id();

-- What a pass went by and what came of it. snapshot: the transactions it saw; null: it cannot be replayed. policy: version
-- of the planning functions and of their settings. Digests are SHA-256: of all that decide read, of all it answered,
-- and of both with the digest of the pass before.
alter table pass
    add column xid          xid8 not null default pg_current_xact_id(),
    add column snapshot     pg_snapshot,
    add column policy       text,
    add column start_limit  integer,
    add column read_digest  bytea,
    add column plan_digest  bytea,
    add column chain_digest bytea;
create index pass_at on pass (at);

-- The planning functions as installed, digested by odc._build_past.
create table planner (
    one    boolean primary key default true check (one),
    digest text not null
);

-- From when on the past is known: an upgrade begins to remember.
create table past_since (
    one boolean primary key default true check (one),
    at  timestamptz not null
);
insert into past_since (at) select case when exists (select from event) then now() else '-infinity' end;

-- past_absent: there was no such row; only its key is told.
do $$
declare
    v_table   text;
    v_columns text;
    v_key     text;
begin
    foreach v_table in array '{pending,running,allocation,planned,refusal,limited,dependency,array_job,job,node,node_free,
                               node_group,gpu_type,partition,partition_node,account,qos,policy,priority_weight,
                               priority_setting,association,coordinator,resource_limit,usage,account_setting,
                               booking,booking_node,licence}'::text[] loop
        continue when to_regclass('odc.' || v_table) is null;
        -- Of some tables most columns never change, follow from others, or tell nothing later.
        select string_agg(quote_ident(a.attname), ', ' order by a.attnum) into v_columns
          from pg_attribute as a
         where a.attrelid = ('odc.' || v_table)::regclass and a.attnum > 0 and not a.attisdropped
           and case v_table
                   when 'job' then a.attname = any ('{id,partition_ids,shape_id,nice,begin_at,deadline_at,time_limit_s,
                                                     dependency,array_throttle,name,comment,array_task_id,array_tasks}')
                   when 'node_free' then a.attname = any ('{node_id,group_id,up}')
                   when 'allocation' then a.attname <> all ('{state,exit_code,exit_signal}')
                   when 'running' then a.attname <> all ('{stop_sent_at,sent_ends_at}')
                   else true end;
        execute format(
            'create table odc.%I as select null::bigint as past_id, null::timestamptz as past_at, '
            'null::xid8 as past_xid, null::boolean as past_absent, %s from odc.%I with no data',
            v_table || '_past', v_columns, v_table);
        execute format(
            'alter table odc.%I alter column past_id set not null, '
            'alter column past_id add generated always as identity, '
            'alter column past_at set not null, '
            'alter column past_xid set not null, alter column past_xid set default pg_current_xact_id(), '
            'alter column past_absent set not null, alter column past_absent set default false',
            v_table || '_past');
        select string_agg(quote_ident(a.attname), ', ' order by k.ord) into v_key
          from pg_index as i
         cross join unnest(i.indkey) with ordinality as k (attnum, ord)
          join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.attnum
         where i.indrelid = ('odc.' || v_table)::regclass and i.indisprimary;
        execute format('create index on odc.%I (%s)', v_table || '_past', v_key);
        -- Rows come in the order of time.
        execute format('create index on odc.%I using brin (past_at) with (pages_per_range = 16, autosummarize = on)',
                       v_table || '_past');
    end loop;
end $$;
