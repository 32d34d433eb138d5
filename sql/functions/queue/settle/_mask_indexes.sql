-- odc._mask_indexes: the positions of the set bits of a GPU mask, ascending, as a JSON array.
create or replace function odc._mask_indexes(p_mask bigint)
returns jsonb
language sql immutable as $$
    select coalesce(jsonb_agg(i order by i), '[]')
      from generate_series(0, 61) as i where p_mask & (1::bigint << i) <> 0;
$$;
