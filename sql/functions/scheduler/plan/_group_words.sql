-- odc._group_words: the groups of each alternative as words of 60 bits, to combine with the words of _free_lists.
-- Arguments  per alternative its groups from..mid (without GPUs) and mid + 1..to of p_groups, as _plan_shapes returns them
-- Returns    per alternative p_words words of the former, then p_words of the latter
create or replace function odc._group_words(
    p_from integer[], p_mid integer[], p_to integer[], p_groups integer[], p_words integer)
returns bigint[]
language sql immutable set search_path = odc, pg_temp as $$
    select array_agg(coalesce(u.bits, 0) order by a.ord, seg, word)
      from unnest(p_from, p_mid, p_to) with ordinality as a (f, m, t, ord)
     cross join generate_series(1, 2) as seg
     cross join generate_series(1, p_words) as word
      left join lateral (
           select sum(1::bigint << ((g - 1) % 60))::bigint as bits
             from unnest(case when seg = 1 then p_groups[a.f:a.m] else p_groups[a.m + 1:a.t] end) as g
            where (g + 59) / 60 = word) as u on true
$$;
