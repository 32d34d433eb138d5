-- odc._every: one value of each record of an array of records. Null if there are none.
-- Arguments  p_size  values per record;  p_value  which one, from 1
create or replace function odc._every(p_records bigint[], p_size integer, p_value integer)
returns bigint[]
language sql immutable set search_path = odc, pg_temp as $$
    select array_agg(p_records[u.i]) from generate_series(p_value, cardinality(p_records), p_size) as u (i)
$$;
