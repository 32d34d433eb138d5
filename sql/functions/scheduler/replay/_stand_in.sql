-- odc._stand_in: copy the past that the views of schema odc_past show into temporary tables of the same names, with
-- the indexes of the present, for functions that read a table many times, such as decide. With pg_temp first in the
-- search path they replace the views, to the end of the transaction. A table whose row type is a function's argument
-- stays a view, because a temporary table has another row type; except the tables that a replay changes.
create or replace function odc._stand_in()
returns void
language plpgsql volatile set search_path = odc_past, odc, pg_temp as $$
declare
    v_table text;
    v_index text;
begin
    for v_table in
        select regexp_replace(c.relname, '_past$', '') as name from pg_class as c
         where c.relnamespace = 'odc'::regnamespace and c.relkind = 'r' and c.relname like '%\_past' and c.relname <> 'job_past'
           and (c.relname in ('partition_past', 'policy_past')
                or not exists (select from pg_proc as f join pg_type as t on t.oid = any (f.proargtypes::oid[])
                                where f.pronamespace = 'odc_past'::regnamespace
                                  and t.typrelid = to_regclass('odc_past.' || regexp_replace(c.relname, '_past$', ''))))
         union all
        select 'running_use'
         order by name
    loop
        if to_regclass(format('pg_temp.%I', v_table)) is not null then
            execute format('drop table pg_temp.%I', v_table);
        end if;
        execute format('create temp table %1$I on commit drop as select * from odc_past.%1$I', v_table);
        for v_index in
            select pg_get_indexdef(i.indexrelid) from pg_index as i
             where i.indrelid = format('odc.%I', v_table)::regclass
        loop
            execute regexp_replace(v_index, 'INDEX \S+ ON (ONLY )?\S+', format('INDEX ON pg_temp.%I', v_table));
        end loop;
        execute format('analyze pg_temp.%I', v_table);
    end loop;
    -- Cached plans would not notice that a name now means another table.
    execute 'discard plans';
end;
$$;
