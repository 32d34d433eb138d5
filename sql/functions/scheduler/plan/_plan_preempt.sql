-- odc._plan_preempt: the cheapest running jobs to end, after their grace, so that a blocked job can start, and where.
-- A set is considered at the moment when the longest grace in it ends. The job must fit then, with the set gone, given
-- everything that _earliest_start considers: jobs that end before then, earlier protected jobs, bookings. A set with a job
-- that is not needed is rejected. If the job starts as soon without preemption, no job is ended. Jobs that are already
-- ending are waited for (_plan_releases).
-- Arguments  p_spare      do not end these: they are already gone, or end for other jobs
--            p_natural    when it would start if no job were ended; null: no end in sight
--            p_alt_from … p_alt_groups  the job's alternatives; per alternative its groups
--            p_gpus       -1: all of the node;  the others  as for _earliest_start
-- Returns    victims: null if there is no such set; their costs, and when the grace of each is over; at: when the job
--            starts; fit: its nodes; then_*: the amounts free on them at that time
create or replace function odc._plan_preempt(
    p_now timestamptz, p_job_id bigint, p_qos_id integer, p_spare bigint[], p_natural bigint, p_node_ids integer[],
    p_alt_from integer, p_alt_to integer, p_group_from integer[], p_group_to integer[], p_alt_groups integer[],
    p_blocks integer[], p_blocks_most integer, p_node_groups integer[], p_free bigint[],
    p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[], p_group_domains integer[],
    p_count integer, p_gpus integer, p_cpus integer, p_mem integer, p_limit_us bigint, p_allow boolean[], p_booking integer,
    p_release_ats bigint[], p_release_nodes integer[], p_release_gpus integer[], p_release_cpus integer[],
    p_release_mems integer[], p_allocs bigint[], p_points bigint[], p_protected bigint[],
    out victims bigint[], out costs bigint[], out ends bigint[], out cost bigint, out at bigint, out fit integer[],
    out then_gpus integer[], out then_cpus integer[], out then_mems integer[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_variable
declare
    v_nodes constant integer := cardinality(p_node_ids);
    v_jobs bigint[];  v_costs bigint[];  v_graces bigint[];  v_ends bigint[];
    v_on record;                -- what these jobs use: node, job, amounts, in order of node and job
    v_first integer[];          -- per node, and one more: its first row there
    v_can integer[];  v_can_ends bigint[];  v_can_costs bigint[];  v_places integer[];  -- those that can be ended for a start at v_at
    v_at bigint;  v_free bigint[];  v_lack record;  v_set integer[];  v_fits integer[];
    v_changes record;
begin
    if exists (select from running as w where w.preempted_by = p_job_id) then
        return;
    end if;
    select array_agg(v.job_id), array_agg(v.cost), array_agg(v.grace), array_agg(v.own_end)
      into v_jobs, v_costs, v_graces, v_ends
      from _plan_victims(p_now, p_qos_id, p_spare) as v;
    if v_jobs is null then
        return;
    end if;
    select array_agg(u.x order by u.x, u.j) as x, array_agg(u.j order by u.x, u.j) as j,
           array_agg(u.gpus order by u.x, u.j) as gpus, array_agg(u.cpus order by u.x, u.j) as cpus,
           array_agg(u.mem_mib order by u.x, u.j) as mems
      into v_on
      from (select b.ord::integer as x, v.ord::integer as j, l.gpus, l.cpus, l.mem_mib
              from unnest(v_jobs) with ordinality as v (job_id, ord)
              join allocation as l on l.job_id = v.job_id
              join unnest(p_node_ids) with ordinality as b (id, ord) on b.id = l.node_id) as u;
    select array_agg(f.at order by f.x) into v_first
      from (select s.x, (1 + coalesce(sum(u.n), 0))::integer as at
              from generate_series(1, v_nodes + 1) as s (x)
              left join (select w.x, count(*) as n from unnest(v_on.x) as w (x) group by w.x) as u on u.x < s.x
             group by s.x) as f;

    select * into v_changes from _plan_changes(p_protected, p_allocs);
    foreach v_at in array array(select distinct u.t from unnest(v_graces) as u (t) order by u.t) loop
        exit when v_at >= p_natural;
        v_free := _free_at(p_free, v_at, v_nodes,
                           p_release_ats, p_release_nodes, p_release_gpus, p_release_cpus, p_release_mems,
                           v_changes.ats, v_changes.froms, v_changes.counts, p_allocs);
        select array_agg(u.o::integer order by u.o), array_agg(u.until order by u.o), array_agg(u.cost order by u.o)
          into v_can, v_can_ends, v_can_costs
          from unnest(v_graces, v_ends, v_costs) with ordinality as u (grace, until, cost, o)
         where u.grace <= v_at and u.until > v_at;
        continue when v_can is null;
        v_places := array_fill(0, array[cardinality(v_jobs)]);
        for i in 1..cardinality(v_can) loop
            v_places[v_can[i]] := i;
        end loop;

        for v_alt in p_alt_from..p_alt_to loop
            v_lack := _lacking_nodes(
                v_at, v_free, p_alt_groups[p_group_from[v_alt]:p_group_to[v_alt]], p_node_groups,
                p_group_gpus, p_group_cpus, p_group_mems, p_group_domains, p_count, p_gpus, p_cpus, p_mem, p_limit_us, p_allow, p_booking,
                p_blocks, p_blocks_most, p_points, v_first, v_on.j, v_on.gpus, v_on.cpus, v_on.mems, v_places);
            continue when cardinality(v_lack.nodes) < p_count;
            v_set := _free_gang(p_count, v_lack.domains, v_lack.lack_from, v_lack.lack_ats, v_lack.lack_gpus, v_lack.lack_cpus,
                                v_lack.lack_mems, v_lack.on_from, v_lack.on_jobs, v_lack.on_gpus, v_lack.on_cpus, v_lack.on_mems,
                                v_can_ends, v_can_costs, cost);
            continue when v_set is null;
            if v_set = '{}' then
                -- It can start then without ending any job.
                if at = v_at then
                    victims := null;
                end if;
                return;
            end if;
            v_fits := _freed_nodes(v_set, p_count, v_can_ends, v_lack.nodes, v_lack.domains, v_lack.lack_from, v_lack.lack_ats,
                                   v_lack.lack_gpus, v_lack.lack_cpus, v_lack.lack_mems, v_lack.on_from, v_lack.on_jobs, v_lack.on_gpus,
                                   v_lack.on_cpus, v_lack.on_mems);
            -- More than one topology block only limits the result: no set is searched for that keeps within it.
            continue when p_blocks_most < (select count(distinct p_blocks[u.x]) from unnest(v_fits) as u (x));
            fit := v_fits;  at := v_at;
            select array_agg(v_jobs[v_can[u.j]] order by u.j), array_agg(v_can_costs[u.j] order by u.j),
                   array_agg(v_graces[v_can[u.j]] order by u.j), sum(v_can_costs[u.j])
              into victims, costs, ends, cost
              from unnest(v_set) as u (j);
            select array_agg(v_free[v_nodes + u.x] + coalesce(s.gpus, 0) order by u.o),
                   array_agg(v_free[2 * v_nodes + u.x] + coalesce(s.cpus, 0) order by u.o),
                   array_agg(v_free[3 * v_nodes + u.x] + coalesce(s.mems, 0) order by u.o)
              into then_gpus, then_cpus, then_mems
              from unnest(fit) with ordinality as u (x, o)
              left join (select w.x, sum(v_on.gpus[w.o])::integer as gpus, sum(v_on.cpus[w.o])::integer as cpus,
                                sum(v_on.mems[w.o])::integer as mems
                           from unnest(v_on.x) with ordinality as w (x, o)
                          where v_jobs[v_on.j[w.o]] = any (victims)
                          group by w.x) as s on s.x = u.x;
        end loop;
    end loop;
end;
$$;
