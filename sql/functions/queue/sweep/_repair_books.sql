-- odc._repair_books: compare facts that the hot tables store twice, and correct rows that differ. None should differ: each
-- difference is a defect of odc, so a repair is counted (odcd_book_repairs_total), recorded as an event, and raises an alert.
-- Returns    the number of corrected rows
-- Locks      the caller holds the turn; the rows that differ; tally
create or replace function odc._repair_books(p_now timestamptz)
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_book  text;
    v_rows  text[];
    v_count integer := 0;
begin
    foreach v_book in array '{array,dependency,member,node,use}'::text[] loop
        v_rows := case v_book
            when 'array' then _repair_arrays(p_now)
            when 'dependency' then _repair_dependencies(p_now)
            when 'member' then _repair_members(p_now)
            when 'node' then _repair_nodes()
            else _repair_use() end;
        continue when v_rows = '{}';
        v_count := v_count + cardinality(v_rows);
        insert into tally as t (metric, labels, value)
        values ('odcd_book_repairs_total', array[v_book], cardinality(v_rows))
            on conflict (metric, labels) do update set value = t.value + excluded.value;
        insert into event (at, kind, actor, detail)
        values (p_now, 'books_repaired', 'odcd',
                jsonb_build_object('book', v_book, 'count', cardinality(v_rows), 'rows', to_jsonb(v_rows[:20])));
    end loop;
    return v_count;
end;
$$;
