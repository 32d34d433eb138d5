-- odc._replay_starts: the starts of a plan, by the pending job or array.
-- Arguments  as decide returns them
-- Returns    per job one text with all its starts: partition:node/GPU mask,…; an array's starts are sorted as text
create or replace function odc._replay_starts(
    p_jobs bigint[], p_partitions integer[], p_nodes integer[], p_alloc_nodes integer[], p_alloc_masks bigint[])
returns table (job_id bigint, starts text)
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    return query
    select s.job_id,
           string_agg(s.partition_id || ':' || w.places, ' ' order by (s.partition_id || ':' || w.places) collate "C")
      from (select u.job_id, u.partition_id, u.nodes, sum(u.nodes) over (order by u.ord) - u.nodes as before
              from unnest(p_jobs, p_partitions, p_nodes) with ordinality as u (job_id, partition_id, nodes, ord)) as s
     cross join lateral (
           select string_agg(n.name || '/' || a.mask, ',' order by n.name) as places
             from unnest(p_alloc_nodes[s.before + 1 : s.before + s.nodes], p_alloc_masks[s.before + 1 : s.before + s.nodes])
                  as a (node_id, mask)
             join node as n on n.id = a.node_id) as w
     group by s.job_id;
end;
$$;
