-- odc._plan_protect: the earliest start of a job that does not fit now, and what each of its nodes has free then.
-- The seam of protection. A running job frees its part when its time limit ends; one that is overdue, in a second.
-- The ends are walked in order of time, giving back what they hold, until enough nodes of one domain fit.
-- Arguments  p_now         the pass's time
--            p_needs       per node position: may the job use it? (its groups, its lists, its partition)
--            p_domains     per node position: EFA domain; 0 for all when the gang need not stay in one
--            p_gpus …      what is free now per node position; its group, and the totals of a node of a group
--            p_need_*      what one member needs; -1 means all of the node
--            p_placed_*    what this pass has placed so far: node position, amounts, seconds until its limit
-- Returns    fitting: how many nodes fit now; planned_at: null when there is no such moment; chosen: the positions
--            that fit first; fit_count: how many nodes of their domain fit then; fits: which; then_*: per position
--            what is free then
create or replace function odc._plan_protect(
    p_now timestamptz, p_node_ids integer[], p_needs boolean[], p_domains integer[],
    p_gpus integer[], p_cpus integer[], p_mems integer[],
    p_groups integer[], p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[],
    p_node_count integer, p_need_gpus integer, p_need_cpus integer, p_need_mem integer,
    p_placed_nodes integer[], p_placed_gpus integer[], p_placed_cpus integer[], p_placed_mems integer[],
    p_placed_limits_s integer[],
    out planned_at timestamptz, out chosen integer[], out fit_count integer, out fits boolean[],
    out then_gpus integer[], out then_cpus integer[], out then_mems integer[], out fitting integer)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ats timestamptz[];  v_positions integer[];  v_gpus integer[];  v_cpus integer[];  v_mems integer[];
    v_count  integer[];         -- per domain, from 0: nodes that fit so far
    v_fit    integer[] := '{}'; -- positions that fit, in order of time
    v_domain integer;
    v_at timestamptz;  d integer;  x integer;  i integer;
begin
    fitting := 0;
    then_gpus := p_gpus;  then_cpus := p_cpus;  then_mems := p_mems;
    fits := array_fill(false, array[cardinality(p_node_ids)]);
    v_count := array_fill(0, array[cardinality(p_node_ids) + 1]);
    for x in 1..cardinality(p_node_ids) loop
        if p_needs[x]
           and p_gpus[x] >= (case when p_need_gpus < 0 then p_group_gpus[p_groups[x]] else p_need_gpus end)
           and p_cpus[x] >= (case when p_need_cpus < 0 then p_group_cpus[p_groups[x]] else p_need_cpus end)
           and p_mems[x] >= (case when p_need_mem < 0 then p_group_mems[p_groups[x]] else p_need_mem end) then
            fits[x] := true;
            fitting := fitting + 1;
            v_fit := v_fit || x;
            v_count[p_domains[x] + 1] := v_count[p_domains[x] + 1] + 1;
        end if;
    end loop;

    select array_agg(e.at), array_agg(e.position), array_agg(e.gpus), array_agg(e.cpus), array_agg(e.mem)
      into v_ats, v_positions, v_gpus, v_cpus, v_mems
      from (select greatest(a.ends_at, p_now + interval '1 second') as at, n.position::integer as position,
                   a.gpus, a.cpus, a.mem_mib as mem
              from unnest(p_node_ids) with ordinality as n (id, position)
              join allocation as a on a.node_id = n.id
             union all
            select p_now + make_interval(secs => p.limit_s), p.position, p.gpus, p.cpus, p.mem
              from unnest(p_placed_nodes, p_placed_gpus, p_placed_cpus, p_placed_mems, p_placed_limits_s)
                   as p (position, gpus, cpus, mem, limit_s)
             where p.limit_s < 2147483647
             order by at, position) as e;
    for i in 1..coalesce(cardinality(v_ats), 0) loop
        v_at := v_ats[i];
        exit when v_at > planned_at or v_at = 'infinity';
        x := v_positions[i];
        continue when not p_needs[x];
        then_gpus[x] := then_gpus[x] + v_gpus[i];
        then_cpus[x] := then_cpus[x] + v_cpus[i];
        then_mems[x] := then_mems[x] + v_mems[i];
        if not fits[x]
           and then_gpus[x] >= (case when p_need_gpus < 0 then p_group_gpus[p_groups[x]] else p_need_gpus end)
           and then_cpus[x] >= (case when p_need_cpus < 0 then p_group_cpus[p_groups[x]] else p_need_cpus end)
           and then_mems[x] >= (case when p_need_mem < 0 then p_group_mems[p_groups[x]] else p_need_mem end) then
            fits[x] := true;
            v_fit := v_fit || x;
            d := p_domains[x] + 1;
            v_count[d] := v_count[d] + 1;
            if planned_at is null and v_count[d] = p_node_count then
                planned_at := v_at;  v_domain := d - 1;
            end if;
        end if;
    end loop;
    if planned_at is null then
        return;
    end if;
    fit_count := v_count[v_domain + 1];
    chosen := '{}';
    foreach x in array v_fit loop
        if p_domains[x] <> v_domain then
            fits[x] := false;
        elsif cardinality(chosen) < p_node_count then
            chosen := chosen || x;
        end if;
    end loop;
end;
$$;
