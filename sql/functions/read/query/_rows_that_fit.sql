-- odc._rows_that_fit: how many of some jobs fit into one answer, by the length of their texts; at least one.
-- A component counts 512 bytes, which its text and its record in the daemon's memory take at most.
-- Arguments  p_ids    jobs, in the order of the answer; ids of pending ones may be negated
--            p_bytes  the texts of all of them together
create or replace function odc._rows_that_fit(p_ids bigint[], p_bytes bigint)
returns integer
language sql stable as $$
    select greatest(1, max(s.n) filter (where s.bytes <= p_bytes))::integer
      from (select u.n, sum(t.bytes) over (order by u.n) as bytes
              from unnest(p_ids) with ordinality as u (id, n)
             cross join lateral (
                   -- Without reading them.
                   select octet_length(j.name) + octet_length(j.work_dir) + coalesce(octet_length(j.comment), 0)
                          + coalesce(octet_length(j.dependency), 0) + coalesce(octet_length(j.stdout), 0)
                          + coalesce(octet_length(j.stderr), 0)
                          + 512 * coalesce(jsonb_array_length(j.options -> 'components'), 0) as bytes
                     from odc.job as j where j.id = abs(u.id) offset 0) as t) as s
$$;
