-- odc._past_table: for one table with a past, create its view in schema odc_past and the triggers that keep its past.
-- A past row is the row as it was until past_at. For each key, the first past row after a moment shows the row as it was
-- then; if there is none, the row itself does. Whether a row existed then follows from its own column p_born, if it has
-- one, otherwise from a past row with past_absent, written when the row was inserted.
-- Arguments  p_table     its name
--            p_born      SQL of the moment a row was inserted; null: past rows show it
--            p_born_xid  SQL of the transaction that inserted it; null: not checked
--            p_how       'set': per statement, for tables where thousands of rows change at once; 'row': per row, and
--                        only if a column that the past keeps changes; 'gone': updates per row, deletes per statement
--            p_comes     whether inserted rows are recorded
create or replace function odc._past_table(
    p_table text, p_born text default null, p_born_xid text default null, p_how text default 'row',
    p_comes boolean default true)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    -- The past keeps only some columns of these; odc._past_views makes the rest of their views.
    v_parts   constant text[] := '{job,node_free,allocation,running}';
    v_past    constant text := p_table || '_past';
    v_columns text;
    v_old     text;
    v_changed text;
    v_key     text;
    v_new_key text;
    v_whole   boolean;
begin
    select string_agg(quote_ident(p.attname), ', ' order by p.attnum),
           string_agg('old.' || quote_ident(p.attname), ', ' order by p.attnum),
           string_agg(format('old.%1$I is distinct from new.%1$I', p.attname), ' or ' order by p.attnum),
           count(*) = (select count(*) from pg_attribute as a
                        where a.attrelid = ('odc.' || p_table)::regclass and a.attnum > 0 and not a.attisdropped)
      into v_columns, v_old, v_changed, v_whole
      from pg_attribute as p
      join pg_attribute as a on a.attrelid = ('odc.' || p_table)::regclass and a.attname = p.attname
     where p.attrelid = ('odc.' || v_past)::regclass and p.attnum > 0 and not p.attisdropped and not a.attisdropped;
    assert v_whole or p_table = any (v_parts),
        format('odc.%s has columns that odc.%s lacks: one migration adds both', p_table, v_past);
    select string_agg(quote_ident(a.attname), ', ' order by k.ord),
           string_agg('new.' || quote_ident(a.attname), ', ' order by k.ord)
      into v_key, v_new_key
      from pg_index as i
     cross join unnest(i.indkey) with ordinality as k (attnum, ord)
      join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.attnum
     where i.indrelid = ('odc.' || p_table)::regclass and i.indisprimary;

    execute format(
        $sql$
        create view odc_past.%6$I as
        select %2$s
          from (select distinct on (%3$s) %2$s, past_absent
                  from (select p.past_id, p.past_absent, %2$s
                          from odc.%4$I as p
                         where p.past_at > (select odc._past_from())
                           and coalesce(not pg_visible_in_snapshot(p.past_xid, (select odc._past_snapshot())), true)
                           and p.past_xid <> (select odc._past_own())
                           and %5$s
                         union all
                        select 9223372036854775807, false, %2$s
                          from odc.%1$I as p
                         where %5$s) as every
                 order by %3$s, past_id) as first
         where not past_absent
        $sql$,
        p_table, v_columns, v_key, v_past,
        concat_ws(' and ', p_born || ' <= (select odc._past_until())',
                  '(coalesce(pg_visible_in_snapshot(' || p_born_xid || ', (select odc._past_snapshot())), true) or '
                  || p_born_xid || ' = (select odc._past_own()))',
                  case when p_born is null then 'true' end),
        case when v_whole then p_table else '_' || p_table end);

    if p_how <> 'row' then
        execute format(
            $sql$
            create function odc_past.keep_all_%1$s() returns trigger language plpgsql set search_path = odc, pg_temp as $body$
            declare
                v_now constant timestamptz := _now();
            begin
                insert into %2$I (past_at, %3$s) select v_now, %3$s from old_rows;
                return null;
            end $body$
            $sql$, p_table, v_past, v_columns);
        execute format('create trigger past_of_gone after delete on odc.%1$I referencing old table as old_rows '
                       'for each statement execute function odc_past.keep_all_%1$s()', p_table);
    end if;
    if p_how = 'set' then
        execute format('create trigger past_of_changed after update on odc.%1$I referencing old table as old_rows '
                       'for each statement execute function odc_past.keep_all_%1$s()', p_table);
    else
        execute format(
            $sql$
            create function odc_past.keep_%1$s() returns trigger language plpgsql set search_path = odc, pg_temp as $body$
            begin
                insert into %2$I (past_at, %3$s) values (_now(), %4$s);
                return null;
            end $body$
            $sql$, p_table, v_past, v_columns, v_old);
        execute format('create trigger past_of_changed after update %2$s on odc.%1$I for each row when (%3$s) '
                       'execute function odc_past.keep_%1$s()',
                       p_table, case when v_whole then '' else 'of ' || v_columns end, v_changed);
    end if;
    if p_how = 'row' then
        execute format('create trigger past_of_gone after delete on odc.%1$I for each row '
                       'execute function odc_past.keep_%1$s()', p_table);
    end if;
    if p_comes then
        execute format(
            $sql$
            create function odc_past.note_%1$s() returns trigger language plpgsql set search_path = odc, pg_temp as $body$
            begin
                insert into %2$I (past_at, past_absent, %3$s) values (_now(), true, %4$s);
                return null;
            end $body$
            $sql$, p_table, v_past, v_key, v_new_key);
        execute format('create trigger past_of_new after insert on odc.%1$I for each row '
                       'execute function odc_past.note_%1$s()', p_table);
    end if;
end;
$$;
