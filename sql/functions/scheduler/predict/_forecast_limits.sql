-- odc._forecast_limits: the limits and licences that may keep jobs of a forecast from starting. Without limits it returns nulls.
-- Arguments  parallel, per job: shape, time limit, user, account, QOS, tasks
-- Returns    lefts: per such limit what is left now, in reverse order
--            uses: per job what it uses of them, as text of an array of three values per limit: minus its number, 0, amount:
--            in the form of _forecast_gang, which the forecast adds to the job's nodes; null: it uses none
--            users, user_uses: running jobs that use them, and what each uses, likewise
create or replace function odc._forecast_limits(
    p_now timestamptz, p_shapes integer[], p_limits_s integer[], p_uids integer[], p_accounts integer[], p_qos_ids integer[],
    p_tasks integer[], out uses text[], out lefts integer[], out users bigint[], out user_uses text[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_most constant bigint := 1000000000;
    v_class record;  v_limit record;  v_scarce integer[];
begin
    select array_agg(c.shape order by c.n) as shapes, array_agg(c.limit_s order by c.n) as limits_s, array_agg(c.uid order by c.n) as uids,
           array_agg(c.account order by c.n) as accounts, array_agg(c.qos order by c.n) as qos_ids, array_agg(c.tasks order by c.n) as tasks
      into v_class
      from (select j.shape, j.limit_s, j.uid, j.account, j.qos, sum(j.tasks) as tasks,
                   row_number() over (order by j.shape, j.limit_s, j.uid, j.account, j.qos) as n
              from unnest(p_shapes, p_limits_s, p_uids, p_accounts, p_qos_ids, p_tasks) as j (shape, limit_s, uid, account, qos, tasks)
             group by j.shape, j.limit_s, j.uid, j.account, j.qos) as c;
    select * into v_limit from _plan_buckets(p_now, v_class.shapes, v_class.limits_s, v_class.uids, v_class.accounts, v_class.qos_ids);
    if v_limit.use_from is null then
        return;
    end if;
    -- Only limits of which all jobs together need more than is left.
    select array_agg(s.bucket order by s.bucket) into v_scarce
      from (select v_limit.use_bucket[u.i] as bucket
              from unnest(v_limit.use_from, v_limit.use_to, v_class.tasks) as c (first, last, tasks)
             cross join lateral generate_series(c.first, c.last) as u (i)
             where v_limit.consumes[v_limit.use_bucket[u.i]] and v_limit.whats[v_limit.use_bucket[u.i]] <> 'gpu_minutes'
             group by v_limit.use_bucket[u.i]
            having sum(c.tasks * v_limit.use_need[u.i]) > v_limit."left"[v_limit.use_bucket[u.i]]) as s;
    if v_scarce is null then
        return;
    end if;
    select array_agg(greatest(-v_most, least(v_most, v_limit."left"[s.bucket]))::integer order by s.n desc) into lefts
      from unnest(v_scarce) with ordinality as s (bucket, n);
    select array_agg(w.uses order by j.o) into uses
      from unnest(p_shapes, p_limits_s, p_uids, p_accounts, p_qos_ids) with ordinality as j (shape, limit_s, uid, account, qos, o)
      join (select c.shape, c.limit_s, c.uid, c.account, c.qos,
                   (select array_agg(v.value order by n.n, v.ord)
                      from generate_series(c.first, c.last) as u (i)
                      join unnest(v_scarce) with ordinality as n (bucket, n) on n.bucket = v_limit.use_bucket[u.i]
                     cross join lateral unnest(array[-n.n, 0, least(v_most, v_limit.use_need[u.i])]) with ordinality as v (value, ord))::text as uses
              from unnest(v_class.shapes, v_class.limits_s, v_class.uids, v_class.accounts, v_class.qos_ids, v_limit.use_from, v_limit.use_to)
                   as c (shape, limit_s, uid, account, qos, first, last)) as w
        on (w.shape, w.limit_s, w.uid, w.account, w.qos) = (j.shape, j.limit_s, j.uid, j.account, j.qos);
    select array_agg(g.job_id order by g.job_id), array_agg(g.uses order by g.job_id) into users, user_uses
      from (select u.job_id, array_agg(v.value order by n.n, v.ord)::text as uses
              from _limit_users(v_scarce, v_limit.scopes, v_limit.scope_ids, v_limit.pers, v_limit.whats, v_limit.sharer_accounts,
                                v_limit.sharer_uids) as u
              join unnest(v_scarce) with ordinality as n (bucket, n) on n.bucket = u.bucket
             cross join lateral unnest(array[-n.n, 0, least(v_most, u.amount)]) with ordinality as v (value, ord)
             group by u.job_id) as g;
end;
$$;
