-- odc._forecast_starts: simulate the queue with predicted run times, to find when its jobs start.
-- It imitates passes, one at each moment at which predicted ends free nodes. Jobs start in the order of the queue. The
-- first job of each set of overlapping nodes that cannot start is protected by time limits, as in the planner. Other jobs
-- start behind it, in the policy's backfill order, if their limit ends before its start or their nodes leave enough for
-- it. Jobs that run inside a booking are left out. It ignores future bookings, changes of the queue's order over time, and
-- later submissions; the caller's calibration compensates for these on average.
--
-- Time is divided into steps that grow with the distance (1/128 of it, 1/64 in large clusters). A step has the ends that
-- fall into it. Within a step, a shape that found no nodes is dead, so a walk considers few classes (equal shape
-- and limit). The protected start is kept while its job stays the first, and recomputed every eighth step.
--
-- Arguments  p_count    consider this many jobs of the queue
--            p_targets  stop when these have started; null: all
--            p_without  leave these jobs out
-- Returns    per job of the queue, in its order: id, seconds from p_now to its start (null: not in sight)
create or replace function odc._forecast_starts(
    p_now timestamptz, p_count integer, p_targets bigint[], p_without bigint[] default '{}', out job_ids bigint[],
    out waits_s integer[])
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_powers constant integer[] := (select array_agg(1 << i order by i) from generate_series(0, 29) as i);
    v_far constant integer := 1000000000;
    v_jobs record;  v_fit record;  v_running record;    -- _forecast_jobs, _forecast_shapes, _forecast_running
    v_free integer[];           -- _forecast_lists
    v_ahead integer[];          -- _forecast_ahead
    v_then integer[];           -- _forecast_protect
    v_walk integer[];           -- _forecast_next
    v_nodes integer[];  v_fulls integer[];  v_domains integer[];  v_count integer;  v_groups integer;  v_bits integer;
    v_shapes integer[];  v_counts integer[];  v_alt_from integer[];  v_alt_to integer[];  v_group_from integer[];
    v_group_to integer[];  v_alt_groups integer[];  v_needs integer[];
    -- The jobs of a class are a list. The classes are a list, too, in the order of their first jobs: the first is v_afters[0].
    v_limits_s integer[];  v_defers boolean[];  v_backs integer[];  v_first_jobs integer[];  v_afters integer[];  v_befores integer[];
    v_todo integer;  v_fresh integer[];
    v_steps integer := 0;  v_step integer := 0;  v_at integer;  v_class integer;  v_shape integer;  v_job integer;  v_picks integer[];
    v_end integer;  v_before integer;  v_after integer;
    -- Limits: how many there are, and per class its part of v_uses. See _forecast_limits.
    v_limits integer;  v_uses integer[];  v_use_from integer[];  v_use_to integer[];
begin
    v_jobs := _forecast_jobs(p_now, p_count, p_targets, p_without);
    job_ids := v_jobs.job_ids;
    if job_ids is null then
        return;
    end if;
    waits_s := array_fill(null::integer, array[cardinality(job_ids)]);
    select count(*) into v_todo from unnest(v_jobs.targets) as w (target) where w.target;
    if v_todo = 0 then
        return;
    end if;
    v_fit := _forecast_shapes(p_now, v_jobs.shape_ids);
    if v_fit.node_ids is null then
        return;
    end if;
    v_limits_s := v_jobs.limits_s;  v_first_jobs := v_jobs.first_jobs;  v_defers := v_jobs.defers;  v_backs := v_jobs.backfills;
    for class in 0..cardinality(v_first_jobs) loop
        v_befores[class] := class - 1;  v_afters[class] := (class + 1) % (cardinality(v_first_jobs) + 1);
    end loop;
    v_nodes := v_fit.groups;  v_fulls := v_fit.fulls;  v_domains := v_fit.domains;  v_shapes := v_fit.class_shapes;
    v_counts := v_fit.counts;  v_alt_from := v_fit.alt_from;  v_alt_to := v_fit.alt_to;  v_group_from := v_fit.group_from;
    v_group_to := v_fit.group_to;  v_alt_groups := v_fit.alt_groups;  v_needs := v_fit.needs;
    v_count := cardinality(v_nodes);  v_groups := cardinality(v_fulls);
    v_running := _forecast_running(v_fit.node_ids, v_nodes, v_fulls, v_fit.group_cpus, v_fit.group_mems, v_jobs.running_ids,
                                   v_jobs.leaving, v_jobs.elapsed_s, v_jobs.running_limits_s, v_jobs.run_s[cardinality(job_ids) + 1:]);
    v_bits := case when cardinality(v_running.nodes) + cardinality(job_ids) < 1500 then 7 else 6 end;
    v_ahead := _forecast_ahead(v_running.groups, v_running.nodes, v_running.units, v_running.end_s, v_running.late_s, v_bits);
    v_free := _forecast_lists(v_nodes, v_running.levels, v_fulls, v_domains);
    v_limits := coalesce(cardinality(v_jobs.lefts), 0);
    if v_limits > 0 then
        v_free := v_free || v_jobs.lefts;  v_uses := '{}';
        for class in 1..cardinality(v_first_jobs) loop
            v_use_from[class] := cardinality(v_uses) + 1;  v_uses := v_uses || coalesce(v_jobs.uses[class]::integer[], '{}');
            v_use_to[class] := cardinality(v_uses);
        end loop;
        for i in 1..coalesce(cardinality(v_jobs.limit_uses), 0) loop
            v_end := _forecast_step(v_jobs.limit_ends_s[i], v_bits, v_powers);
            v_ahead := _forecast_add(v_ahead, v_bits, v_jobs.limit_uses[i]::integer[], v_end, v_end);
        end loop;
    end if;
    v_then := v_running.levels || array_fill(0, array[5 * v_groups + 1]);
    v_fresh := array[0, -1, 0, (select count(*)::integer from unnest(v_fit.deads) as w (dead) where w.dead >= 0), 0, 0, 0, 0]
               || array_fill(0, array[v_groups]) || v_fit.deads || array_fill(0, array[v_limits]);

    while v_todo > 0 and v_step < v_ahead[1] loop
        v_step := v_step + 1;
        if v_step & 31 = 0 and v_ahead[3 + 2 * ((34 - v_bits) << v_bits) + (v_step >> 5)] = 0 then
            v_step := v_step + 31;
            continue;
        end if;
        continue when v_ahead[2 + v_step] = 0;
        v_steps := v_steps + 1;
        v_end := greatest(0, (v_step >> v_bits) - 1);
        v_at := ((v_step - (v_end << v_bits)) << v_end) + ((1 << v_end) >> 1);
        exit when v_at > v_far;     -- in 31 years; later ends would not fit into an integer
        v_free := _forecast_release(v_free, v_ahead, v_ahead[2 + v_step], v_count, v_fulls, v_domains);

        -- A pass.
        v_walk := v_fresh;  v_walk[1] := v_afters[0];
        while v_todo > 0 loop
            v_walk := _forecast_next(v_walk, v_free, v_count, v_fulls, v_domains, v_shapes, v_counts, v_alt_from, v_alt_to, v_group_from,
                                     v_group_to, v_alt_groups, v_needs, v_limits_s, v_first_jobs, v_afters, v_defers, v_backs,
                                     v_limits, v_uses, v_use_from, v_use_to);
            exit when v_walk[6] = 0;
            v_class := v_walk[7];  v_shape := v_shapes[v_class];  v_job := v_first_jobs[v_class];
            if v_walk[6] = 2 then
                if v_then[v_count + 2 * v_groups + 3 * v_walk[5] - 2] <> v_job or v_steps & 7 = 0 then
                    v_then := _forecast_protect(
                        v_then, v_walk[5], v_job, v_counts[v_shape], v_group_from[v_alt_from[v_shape]], v_group_to[v_alt_to[v_shape]],
                        v_alt_groups, v_needs, v_walk, v_step, v_bits, v_ahead, v_free, v_nodes, v_fulls);
                end if;
                continue;
            end if;
            v_picks := v_walk[9 + v_groups + cardinality(v_counts) + v_limits:];
            v_then := _forecast_beside(v_then, v_picks, v_walk[8 + v_picks[1]], v_at + v_limits_s[v_class], v_count, v_fulls);
            if v_then[v_count + 5 * v_groups + 1] = 0 then
                -- It would delay a protected job.
                v_walk[8 + v_groups + v_shape] := v_limits_s[v_class];
                v_walk[1] := case when v_walk[2] < 0 then v_afters[v_class] else 0 end;
                continue;
            end if;
            -- It starts, and ends in a later step.
            v_end := greatest(v_step + 1, _forecast_step(v_at + greatest(1, v_jobs.run_s[v_job]), v_bits, v_powers));
            if v_limits > 0 then
                v_free := _forecast_use(v_free, v_uses[v_use_from[v_class]:v_use_to[v_class]]);
            end if;
            v_ahead := _forecast_add(v_ahead, v_bits, v_picks || v_uses[v_use_from[v_class]:v_use_to[v_class]], v_end,
                                     greatest(v_end, _forecast_step(v_at + v_limits_s[v_class], v_bits, v_powers)));
            v_free := _forecast_take(v_free, v_picks, v_count, v_fulls, v_domains);
            if waits_s[v_job] is null then
                waits_s[v_job] := v_at;  v_todo := v_todo - v_jobs.targets[v_job]::integer;
            end if;
            if v_jobs.tasks[v_job] > 1 then
                v_jobs.tasks[v_job] := v_jobs.tasks[v_job] - 1;
                continue;
            end if;
            -- The class continues with its next job, and moves to that job's place among the classes.
            v_job := v_jobs.nexts[v_job];  v_after := v_afters[v_class];  v_before := v_befores[v_class];
            v_first_jobs[v_class] := v_job;
            continue when v_job > 0 and (v_after = 0 or v_first_jobs[v_after] > v_job);
            v_walk[1] := case when v_walk[2] < 0 then v_after when v_job > 0 then v_class else 0 end;
            v_afters[v_before] := v_after;  v_befores[v_after] := v_before;
            continue when v_job = 0;
            while v_afters[v_after] > 0 and v_first_jobs[v_afters[v_after]] < v_job loop
                v_after := v_afters[v_after];
            end loop;
            v_befores[v_class] := v_after;  v_afters[v_class] := v_afters[v_after];
            v_befores[v_afters[v_after]] := v_class;  v_afters[v_after] := v_class;
        end loop;
    end loop;
end;
$$;
