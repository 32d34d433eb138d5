-- odc.make_partitions: create_partitions, under the name that daemons of version 23 call.
-- Arguments  p_ahead  ignored
-- Locks      as create_partitions
create or replace function odc.make_partitions(p_ahead integer default 3)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform create_partitions();
end;
$$;
