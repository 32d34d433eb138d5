-- odc.list_usage: the usage from p_since to p_until, in groups; running jobs count so far.
-- Arguments  p_by        user, account, qos, partition, gpu_type, kind: one or several, which define the groups
--            p_filters   {user: [], account: [], gpu_type: [], kind}: only these
-- Jobs and accounts are looked up by id: a generic plan expects few, and would compare each with each attempt.
-- Returns    a JSON array, the most used first, of {group: {user: …}, jobs: that ran in the period, gpu_s, cpu_s,
--            began: that started in it for the first time, wait_s: of these, {mean, median, most}, from submission or
--            the begin time until the start, for reservations until active; failed: ended in the period as failed,
--            early: reservations that ended before their time, early_gpu_s: the GPU time they released by that}
create or replace function odc.list_usage(
    p_by text[], p_filters jsonb, p_since timestamptz, p_until timestamptz, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_users    constant text[] := (select array_agg(x) from jsonb_array_elements_text(p_filters -> 'user') as x);
    v_accounts constant text[] := (select array_agg(x) from jsonb_array_elements_text(p_filters -> 'account') as x);
    v_types    constant text[] := (select array_agg(lower(x)) from jsonb_array_elements_text(p_filters -> 'gpu_type') as x);
begin
    return (
        with span as materialized (
            select a.job_id, a.attempt, a.started_at, a.ended_at, a.node_names[1] as node, coalesce(a.gpus, 0) as gpus, coalesce(a.cpus, 0) as cpus
              from attempt as a
             where a.ended_at > p_since and a.started_at < p_until
             union all
            select r.job_id, r.attempt, r.started_at, greatest(r.started_at, coalesce(r.exited_at, p_now)), h.node, h.gpus, h.cpus
              from running as r
             cross join lateral (select min(n.name) as node, sum(a.gpus) as gpus, sum(a.cpus) as cpus
                                   from allocation as a join node as n on n.id = a.node_id where a.job_id = r.job_id) as h
             where r.started_at < p_until
        ), used as (
            select s.job_id, max(s.node) as node, max(s.gpus) as gpus, min(s.started_at) filter (where s.attempt = 1) as first_at,
                   sum(s.gpus * t.s) as gpu_s, sum(s.cpus * t.s) as cpu_s
              from span as s
             cross join lateral (select greatest(0, extract(epoch from least(s.ended_at, p_until) - greatest(s.started_at, p_since))) as s) as t
             group by s.job_id
        ), spent as (
            select j.user_name as "user", a.name as account, q.name as qos, coalesce(t.name, '-') as partition,
                   coalesce(h.gpu_type, n.gpu_type, '-') as gpu_type, j.kind::text as kind, u.gpu_s, u.cpu_s,
                   case when b.began_at >= p_since and b.began_at < p_until
                        then greatest(0, extract(epoch from b.began_at - greatest(j.submitted_at, j.begin_at))) end as wait_s,
                   e.here and j.state in ('FAILED', 'NODE_FAIL', 'OUT_OF_MEMORY', 'BOOT_FAIL', 'DEADLINE') as failed,
                   case when e.here and v.expires_at > j.ended_at then u.gpus * extract(epoch from v.expires_at - j.ended_at) end as early_gpu_s
              from used as u
             cross join lateral (select * from job as w where w.id = u.job_id offset 0) as j
             cross join lateral (select * from account as w where w.id = j.account_id offset 0) as a
              join qos as q on q.id = j.qos_id
              join shape as h on h.id = j.shape_id
              left join reservation as v on v.job_id = j.id
              left join running as r on r.job_id = j.id
              left join partition as t on t.id = coalesce(r.partition_id, j.partition_id)
              left join node as n on n.name = u.node
             cross join lateral (select case when v.job_id is not null then v.launched_at else u.first_at end as began_at) as b
             cross join lateral (select coalesce(j.ended_at >= p_since and j.ended_at < p_until, false) as here) as e
             where (v_users is null or j.user_name = any (v_users))
               and (v_accounts is null or a.name = any (v_accounts))
               and (v_types is null or coalesce(h.gpu_type, n.gpu_type) = any (v_types))
               and (p_filters ->> 'kind' is null or j.kind::text = p_filters ->> 'kind')
        ), keyed as (
            select t.*, array(select to_jsonb(t) ->> k from unnest(p_by) as k) as key from spent as t
        ), grouped as (
            select k.key, count(*) as jobs, round(sum(k.gpu_s))::bigint as gpu_s, round(sum(k.cpu_s))::bigint as cpu_s, count(k.wait_s) as began,
                   round(avg(k.wait_s))::bigint as mean_s, round(percentile_disc(0.5) within group (order by k.wait_s))::bigint as median_s,
                   round(max(k.wait_s))::bigint as most_s, count(*) filter (where k.failed) as failed,
                   count(k.early_gpu_s) as early, round(coalesce(sum(k.early_gpu_s), 0))::bigint as early_gpu_s
              from keyed as k group by k.key
        )
        select coalesce(json_agg(
                   json_build_object(
                       'group', (select json_object_agg(b.k, g.key[b.n] order by b.n) from unnest(p_by) with ordinality as b (k, n)),
                       'jobs', g.jobs, 'gpu_s', g.gpu_s, 'cpu_s', g.cpu_s, 'began', g.began,
                       'wait_s', case when g.began > 0 then json_build_object('mean', g.mean_s, 'median', g.median_s, 'most', g.most_s) end,
                       'failed', g.failed, 'early', g.early, 'early_gpu_s', g.early_gpu_s)
                   order by g.gpu_s desc, g.cpu_s desc, g.key), '[]')::text
          from grouped as g);
end;
$$;
