-- odc._lowest_gpus: the lowest p_count GPUs of a mask, as a mask. Null: there are fewer.
create or replace function odc._lowest_gpus(p_mask bigint, p_count integer)
returns bigint
language sql immutable set search_path = odc, pg_temp as $$
    select case when count(*) = p_count then coalesce(bit_or(1::bigint << b), 0) end
      from (select b from generate_series(0, 61) as b where p_mask >> b & 1 = 1 order by b limit p_count) as bits;
$$;
