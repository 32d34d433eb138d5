-- odc.create_partitions: create the PostgreSQL partitions that the next ids need.
-- A new partition begins where the highest one ends. It is created when less than half a span of ids is left, so that a
-- site at a million jobs a day creates one of each parent every 100 days and has weeks to retry.
-- A new table is filled with the parent's definition and then attached: unlike `create table ... partition of`, that does
-- not conflict with the locks of the parent's readers and writers.
-- Returns    the names of the partitions that were created; none while another session creates them
-- Locks      advisory 0x6F6466 ("odf"), if it is free; the partitioned parents, share update exclusive, only when one is missing
-- Raises     55P03 lock_not_available after 2 s; nothing was created then
create or replace function odc.create_partitions()
returns text[]
language plpgsql volatile set search_path = odc, pg_temp set lock_timeout = '2s' as $$
declare
    -- Names keep the numbering of the first partitions, which had this many ids each.
    v_unit  constant bigint := 2000000;
    v_made  text[] := '{}';
    v_part  record;
    v_upper bigint;
    v_name  text;
begin
    -- Two sessions that create the same table would fail; the other session creates it.
    if not pg_try_advisory_xact_lock(7300198) then
        return v_made;
    end if;
    for v_part in
        select p.parent, p.span, coalesce(p.last_id, 0) as last_id,
               (select max((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''?(\d+)'))[1]::bigint)
                  from pg_inherits as i join pg_class as c on c.oid = i.inhrelid
                 where i.inhparent = to_regclass('odc.' || p.parent)) as upper
          from (values ('job', 100000000::bigint, pg_sequence_last_value('job_id_seq')),
                       ('attempt', 100000000, pg_sequence_last_value('job_id_seq')),
                       ('prediction', 100000000, pg_sequence_last_value('job_id_seq')),
                       ('event', 400000000, pg_sequence_last_value('event_id_seq'))) as p (parent, span, last_id)
         order by p.parent
    loop
        v_upper := coalesce(v_part.upper, 0);
        while v_upper - v_part.last_id < v_part.span / 2 loop
            v_name := format('%s_%s', v_part.parent, v_upper / v_unit);
            execute format('create table odc.%I (like odc.%I including all excluding identity)', v_name, v_part.parent);
            execute format('alter table odc.%I attach partition odc.%I for values from (%L) to (%L)',
                           v_part.parent, v_name, v_upper, v_upper + v_part.span);
            v_upper := v_upper + v_part.span;
            v_made := v_made || v_name;
        end loop;
    end loop;
    return v_made;
end;
$$;
