-- odc._node_costs: per node, the cheapest jobs to end so that one member of a gang fits there. See _free_node.
-- Arguments  p_below  jobs that cost at least this much are of no use;  the others  as for _free_gang
-- Returns    per node: cost and number of the jobs, and the jobs separated by commas; null: there is no such set
create or replace function odc._node_costs(
    p_count integer, p_lack_from integer[], p_lack_at bigint[], p_lack_gpus integer[], p_lack_cpus integer[], p_lack_mems integer[],
    p_on_from integer[], p_on_job integer[], p_on_gpus integer[], p_on_cpus integer[], p_on_mems integer[],
    p_ends bigint[], p_costs bigint[], p_below bigint, out costs bigint[], out counts integer[], out jobs text[])
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_free integer[];  v_cost bigint;  v_count integer;  v_text text;
    v_lack integer;  v_lack_to integer;  v_on integer;  v_on_to integer;
begin
    for node in 1..cardinality(p_lack_from) - 1 loop
        costs[node] := null;  jobs[node] := null;  counts[node] := 0;
        v_lack := p_lack_from[node];  v_lack_to := p_lack_from[node + 1] - 1;
        v_on := p_on_from[node];  v_on_to := p_on_from[node + 1] - 1;
        -- One node is enough: skip a node whose cheapest job costs more than a set already found.
        continue when p_count = 1 and v_lack <= v_lack_to and p_costs[p_on_job[v_on]] >= p_below;
        select _free_node(
                   p_lack_at[v_lack:v_lack_to], p_lack_gpus[v_lack:v_lack_to], p_lack_cpus[v_lack:v_lack_to],
                   p_lack_mems[v_lack:v_lack_to], array_agg(p_ends[u.job] order by u.o), array_agg(p_costs[u.job] order by u.o),
                   p_on_gpus[v_on:v_on_to], p_on_cpus[v_on:v_on_to], p_on_mems[v_on:v_on_to], p_below)
          into v_free
          from unnest(p_on_job[v_on:v_on_to]) with ordinality as u (job, o);
        continue when v_free is null;
        select coalesce(sum(p_costs[p_on_job[v_on - 1 + u.at]]), 0), count(*),
               coalesce(string_agg(p_on_job[v_on - 1 + u.at]::text, ',' order by u.at), '')
          into v_cost, v_count, v_text
          from unnest(v_free) as u (at);
        costs[node] := v_cost;  counts[node] := v_count;  jobs[node] := v_text;
        if p_count = 1 then
            p_below := v_cost + 1;
        end if;
    end loop;
end;
$$;
