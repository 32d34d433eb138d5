-- odc._forecast_jobs: the jobs of a forecast: the first of the queue, in classes of equal shape, time limit and limits, and
-- the running ones, with predicted run times.
-- Arguments  as for _forecast_starts
-- Returns    per job of the queue, in its order: job_ids; targets: whether the forecast must find its start; tasks: how many
--            are left of an array; nexts: the next job of its class (0: none);  run_s: predicted run times of these jobs, and
--            then of running jobs
--            per class, in the order of their first jobs: shape_ids, limits_s, first_jobs: the first job, defers: for jobs behind a
--            protected job, the policy has another order;  backfills: the classes in that order
--            uses: per class what its jobs use of limits (null: of none), see _forecast_limits
--            lefts, limit_uses: what is left of limits, and what running jobs use of them, see there;  limit_ends_s: seconds
--            until these end, as predicted
--            per running job: running_ids, leaving: it ends now, elapsed_s, running_limits_s
create or replace function odc._forecast_jobs(
    p_now timestamptz, p_count integer, p_targets bigint[], p_without bigint[],
    out job_ids bigint[], out targets boolean[], out tasks integer[], out nexts integer[], out run_s integer[],
    out shape_ids integer[], out limits_s integer[], out first_jobs integer[], out defers boolean[], out backfills integer[],
    out running_ids bigint[], out leaving boolean[], out elapsed_s integer[], out running_limits_s integer[],
    out uses text[], out lefts integer[], out limit_uses text[], out limit_ends_s integer[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_far constant integer := 1000000000;
    v_shapes integer[];  v_limits integer[];  v_orders text[];  v_uids integer[];  v_running_uids integer[];  v_running_shapes integer[];
    v_accounts integer[];  v_qos_ids integer[];  v_uses text[];  v_users bigint[];
begin
    select array_agg(f.job_id order by f.place), array_agg(f.shape_id order by f.place), array_agg(f.time_limit_s order by f.place),
           array_agg(least(f.tasks, 1000) order by f.place), array_agg(f.backfill order by f.place), array_agg(f.uid order by f.place),
           array_agg(coalesce(f.job_id = any (p_targets), true) order by f.place), array_agg(f.account_id order by f.place),
           array_agg(f.qos_id order by f.place)
      into job_ids, v_shapes, v_limits, tasks, v_orders, v_uids, targets, v_accounts, v_qos_ids
      from (select q.*, max(q.place) filter (where q.job_id = any (p_targets)) over () as last
              from _forecast_queue(p_now, p_count, p_without) as q) as f
     where p_targets is null or f.place <= f.last;
    if not true = any (targets) or job_ids is null then
        return;
    end if;
    select l.uses, l.lefts, l.users, l.user_uses into v_uses, lefts, v_users, limit_uses
      from _forecast_limits(p_now, v_shapes, v_limits, v_uids, v_accounts, v_qos_ids, tasks) as l;
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
    select array_agg(case when r.leaving then 1 else greatest(1, r.run_s - r.elapsed_s) end order by u.o) into limit_ends_s
      from unnest(v_users) with ordinality as u (job_id, o)
      join unnest(running_ids, leaving, elapsed_s, run_s[cardinality(job_ids) + 1:]) as r (job_id, leaving, elapsed_s, run_s)
        on r.job_id = u.job_id;
    select array_agg(c.shape order by c.head), array_agg(least(c.limit_s, v_far) order by c.head), array_agg(c.head order by c.head),
           array_agg(c.backfill in ('sjbf', 'safbf') order by c.head),
           array_agg(c.class order by case c.backfill when 'safbf' then c.area else least(c.limit_s, v_far) end, c.class),
           array_agg(c.uses order by c.head)
      into shape_ids, limits_s, first_jobs, defers, backfills, uses
      from (select y.*, (row_number() over (order by y.head))::integer as class,
                   y.limit_s * (d.node_count * greatest(d.gpus_per_node, 1))::bigint as area
              from (select w.shape, w.limit_s, w.uses, min(w.backfill) as backfill, min(w.o)::integer as head
                      from unnest(v_shapes, v_limits, v_orders, v_uses) with ordinality as w (shape, limit_s, backfill, uses, o)
                     group by w.shape, w.limit_s, w.uses) as y
              join shape as d on d.id = y.shape) as c;
    select array_agg(coalesce(w.next, 0) order by w.o) into nexts
      from (select u.o, lead(u.o) over (partition by u.shape, u.limit_s, u.uses order by u.o)::integer as next
              from unnest(v_shapes, v_limits, v_uses) with ordinality as u (shape, limit_s, uses, o)) as w;
end;
$$;
