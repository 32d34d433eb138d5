-- odc._build_past: rebuild schema odc_past; the installer calls it after it has loaded all functions and views.
-- odc_past has a view for every table with a past, which shows the table at the moment set by odc._travel. It also has a
-- copy of every view and stable function of odc, without the schema's name, so that with odc_past before odc in the
-- search path they read those views. So every report on the present is also available for the past.
-- Locks      every table with a past, access exclusive, to the end of the transaction
create or replace function odc._build_past()
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_own     constant text := '^_?(past_|travel|stand_in|replay)';
    v_table   text;
    v_text    text;
    v_views   text[];
    v_left    text[];
    v_error   text;
begin
    drop schema if exists odc_past cascade;
    create schema odc_past;
    for v_table in
        select regexp_replace(c.relname, '_past$', '') from pg_class as c
         where c.relnamespace = 'odc'::regnamespace and c.relkind = 'r' and c.relname like '%\_past'
         order by c.relname
    loop
        perform case v_table
            when 'pending' then _past_table('pending', 'p.born_at', 'p.born_xid', 'set', false)
            when 'running' then _past_table('running', 'p.started_at', 'p.born_xid', 'gone', false)
            -- Rows of these are inserted together with their job.
            when 'allocation' then _past_table('allocation', p_how => 'gone', p_comes => false)
            when 'array_job' then _past_table('array_job', p_comes => false)
            when 'job' then _past_table('job', p_comes => false)
            else _past_table(v_table) end;
    end loop;
    perform _past_views();

    set local search_path = odc_past, odc, pg_temp;
    set local check_function_bodies = off;
    for v_text in
        select regexp_replace(pg_get_functiondef(p.oid), '^ SET search_path TO .*$', '', 'n')
          from pg_proc as p
         where p.pronamespace = 'odc'::regnamespace and p.prokind = 'f' and p.provolatile = 's' and p.proname !~ v_own
           and p.prorettype <> 'trigger'::regtype
         order by p.proname
    loop
        execute regexp_replace(v_text, '\modc\.', '', 'g');
    end loop;
    -- A view without rows is a row type: the copies of functions use that of odc, like the functions that have no copy.
    v_left := array(select c.relname::text from pg_class as c
                     where c.relnamespace = 'odc'::regnamespace and c.relkind = 'v' and pg_get_viewdef(c.oid) !~* '\mwhere false'
                     order by c.relname);
    -- One view may need another: continue as long as any can be created.
    loop
        v_views := v_left;  v_left := '{}';
        foreach v_table in array v_views loop
            begin
                execute format('create view odc_past.%I as %s', v_table,
                               regexp_replace(pg_get_viewdef(('odc.' || v_table)::regclass), '\modc\.', '', 'g'));
            exception when undefined_table or undefined_function or undefined_column then
                v_left := v_left || v_table;  v_error := sqlerrm;
            end;
        end loop;
        exit when v_left = '{}';
        assert cardinality(v_left) < cardinality(v_views), format('views of the past: %s: %s', v_left, v_error);
    end loop;
    create view odc_past.running_use as select * from odc_past._count_use();
    set local check_function_bodies = on;
    perform odc._note_planner();
end;
$$;
