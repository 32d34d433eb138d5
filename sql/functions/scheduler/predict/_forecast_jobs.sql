-- odc._forecast_jobs: the jobs of a forecast: the first of the queue, in classes of equal shape and time limit, and the
-- running ones, with predicted run times.
-- Arguments  as for _forecast_starts
-- Returns    per job of the queue, in its order: job_ids; targets: whether the forecast must find its start; tasks: how many
--            are left of an array; nexts: the next job of its class (0: none);  run_s: predicted run times of these jobs, and
--            then of running jobs
--            per class, in the order of their first jobs: shape_ids, limits_s, heads: the first job, defers: for jobs behind a
--            protected job, the policy has another order;  backfills: the classes in that order
--            per running job: running_ids, leaving: it ends now, elapsed_s, running_limits_s
create or replace function odc._forecast_jobs(
    p_now timestamptz, p_limit integer, p_targets bigint[], p_without bigint[],
    out job_ids bigint[], out targets boolean[], out tasks integer[], out nexts integer[], out run_s integer[],
    out shape_ids integer[], out limits_s integer[], out heads integer[], out defers boolean[], out backfills integer[],
    out running_ids bigint[], out leaving boolean[], out elapsed_s integer[], out running_limits_s integer[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_far constant integer := 1000000000;
    v_shapes integer[];  v_limits integer[];  v_orders text[];  v_uids integer[];  v_running_uids integer[];  v_running_shapes integer[];
begin
    select array_agg(f.job_id order by f.place), array_agg(f.shape_id order by f.place), array_agg(f.time_limit_s order by f.place),
           array_agg(least(f.tasks, 1000) order by f.place), array_agg(f.backfill order by f.place), array_agg(f.uid order by f.place),
           array_agg(coalesce(f.job_id = any (p_targets), true) order by f.place)
      into job_ids, v_shapes, v_limits, tasks, v_orders, v_uids, targets
      from (select q.*, max(q.place) filter (where q.job_id = any (p_targets)) over () as last
              from _forecast_queue(p_now, p_limit, p_without) as q) as f
     where p_targets is null or f.place <= f.last;
    if not true = any (targets) or job_ids is null then
        return;
    end if;
    select array_agg(r.job_id order by r.job_id), array_agg(r.uid order by r.job_id), array_agg(r.shape_id order by r.job_id),
           array_agg(r.time_limit_s order by r.job_id),
           array_agg(r.state = 'COMPLETING' or r.intent is not null order by r.job_id),
           array_agg(greatest(0, extract(epoch from p_now - r.started_at))::integer order by r.job_id)
      into running_ids, v_running_uids, v_running_shapes, running_limits_s, leaving, elapsed_s
      from running as r;
    -- Of a running job, given how long it has run.
    select array_agg(least(r.p50_s, v_far) order by r.ord) into run_s
      from _predict_run_times(v_uids || v_running_uids, _run_names(job_ids || running_ids), v_shapes || v_running_shapes,
                              v_limits || running_limits_s, array_fill(-1, array[cardinality(job_ids)]) || elapsed_s) as r;
    select array_agg(c.shape order by c.head), array_agg(least(c.limit_s, v_far) order by c.head), array_agg(c.head order by c.head),
           array_agg(c.backfill in ('sjbf', 'safbf') order by c.head),
           array_agg(c.class order by case c.backfill when 'safbf' then c.area else least(c.limit_s, v_far) end, c.class)
      into shape_ids, limits_s, heads, defers, backfills
      from (select y.*, (row_number() over (order by y.head))::integer as class,
                   y.limit_s * (d.node_count * greatest(d.gpus_per_node, 1))::bigint as area
              from (select w.shape, w.limit_s, min(w.backfill) as backfill, min(w.o)::integer as head
                      from unnest(v_shapes, v_limits, v_orders) with ordinality as w (shape, limit_s, backfill, o)
                     group by w.shape, w.limit_s) as y
              join shape as d on d.id = y.shape) as c;
    select array_agg(coalesce(w.next, 0) order by w.o) into nexts
      from (select u.o, lead(u.o) over (partition by u.shape, u.limit_s order by u.o)::integer as next
              from unnest(v_shapes, v_limits) with ordinality as u (shape, limit_s, o)) as w;
end;
$$;
