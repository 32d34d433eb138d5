-- odc._forecast_running: what running jobs use, and when they release it.
-- Arguments  p_node_ids … p_group_mems  as _forecast_shapes returns them
--            p_job_ids … p_run_s        running jobs: as _forecast_jobs returns them
-- Returns    per release, in the order of predicted ends: groups, nodes (0: whole nodes), units: levels, or whole nodes;
--            end_s, late_s: seconds from now to the predicted end, and to the end of its limit
--            levels: per node: free now; -1: its job has all of it
create or replace function odc._forecast_running(
    p_node_ids integer[], p_groups integer[], p_fulls integer[], p_group_cpus integer[], p_group_mems integer[],
    p_job_ids bigint[], p_leaving boolean[], p_elapsed_s integer[], p_limits_s integer[], p_run_s integer[],
    out groups integer[], out nodes integer[], out units integer[], out end_s integer[], out late_s integer[], out levels integer[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    with ending as materialized (
        select r.job_id,
               case when r.leaving then 1 else greatest(1, r.run_s - r.elapsed_s) end as end_s,
               case when r.leaving then 1 else greatest(1, least(1000000000, r.limit_s) - r.elapsed_s) end as late_s
          from unnest(p_job_ids, p_leaving, p_elapsed_s, p_limits_s, p_run_s) as r (job_id, leaving, elapsed_s, limit_s, run_s)
    ), held as materialized (
        select a.job_id, n.x::integer as x, n.g, y.end_s, y.late_s, w.units,
               w.units = p_fulls[n.g] and count(*) over (partition by n.x) = 1 as whole
          from unnest(p_node_ids, p_groups) with ordinality as n (id, g, x)
          join allocation as a on a.node_id = n.id
          join ending as y on y.job_id = a.job_id
         cross join lateral (
               select least(p_fulls[n.g], greatest(1, a.gpus,
                    (2 * p_fulls[n.g] * a.cpus + p_group_cpus[n.g]) / (2 * p_group_cpus[n.g]),
                    ((2::bigint * p_fulls[n.g] * a.mem_mib + p_group_mems[n.g]) / (2 * p_group_mems[n.g]::bigint))::integer))
                   as units) as w
    ), entry as (
        select h.g, 0 as x, count(*)::integer as units, h.end_s, h.late_s, min(h.x) as ord
          from held as h where h.whole group by h.job_id, h.g, h.end_s, h.late_s
         union all
        select h.g, h.x, h.units, h.end_s, h.late_s, h.x from held as h where not h.whole
    )
    select coalesce((select array_agg(e.g order by e.end_s, e.ord) from entry as e), '{}'),
           coalesce((select array_agg(e.x order by e.end_s, e.ord) from entry as e), '{}'),
           coalesce((select array_agg(e.units order by e.end_s, e.ord) from entry as e), '{}'),
           (select array_agg(e.end_s order by e.end_s, e.ord) from entry as e),
           (select array_agg(e.late_s order by e.end_s, e.ord) from entry as e),
           (select array_agg(case when t.whole then -1 else greatest(0, p_fulls[n.g] - coalesce(t.units, 0)) end::integer
                             order by n.x)
              from unnest(p_groups) with ordinality as n (g, x)
              left join (select h.x, sum(h.units) as units, bool_or(h.whole) as whole from held as h group by h.x) as t
                on t.x = n.x)
      into groups, nodes, units, end_s, late_s, levels;
end;
$$;
