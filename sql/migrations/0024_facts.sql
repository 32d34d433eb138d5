-- What a pass trusts between its snapshot and its writes. See docs/decisions/0027.
-- Locks the tables listed below against writers for an instant each, to add triggers, and pass to add a column without a
-- default.

-- One row whose version rises when something changes that a plan relies on and that no row of the plan shows: a booking, a
-- limit, a licence, a partition, a QOS, a policy.
create table facts (
    one     boolean primary key default true check (one),
    version bigint not null
) with (fillfactor = 10);
insert into facts (version) values (0);

-- Jobs of the plan that changed before it was written: their starts and planned starts were left out. null: none did.
alter table pass add column dropped bigint[];

-- The functions' present versions are in sql/functions/plan/.
create function _facts_changed() returns trigger language plpgsql as $$ begin return null; end; $$;
create function _limit_moved() returns trigger language plpgsql as $$ begin return null; end; $$;

do $$
declare
    v_table text;
    v_event text;
begin
    for v_table, v_event in
        select t.name, e.name
          from unnest('{booking,booking_node,licence,resource_limit,association,account,qos,partition,partition_node,policy,
                        priority_weight,priority_setting,account_setting}'::text[]) as t (name)
         cross join unnest('{insert,update,delete}'::text[]) as e (name)
         -- Nothing in the queue can refer to one of these before it exists.
         where not (e.name = 'insert' and t.name = any ('{account,association,qos,partition,policy,licence}'))
    loop
        execute format('create trigger facts_%2$s after %2$s on %1$I referencing %3$s table as changed_rows '
                       'for each statement execute function _facts_changed()',
                       v_table, v_event, case v_event when 'delete' then 'old' else 'new' end);
    end loop;
end $$;
create trigger facts_limit after update of time_limit_s on running
    for each row when (old.time_limit_s <> new.time_limit_s) execute function _limit_moved();
