-- odc.list_idle: the allocated but idle GPUs with their jobs, and the jobs waiting for those GPU types.
-- Arguments  p_filters  {user: [], account: [], gpu_type: [], kind}: only these jobs
-- Returns    JSON {source, idle_ratio, idle_after_s, jobs: most lost GPU time first, waiting: [{gpu_type, jobs, gpus,
--            users, since}]: for the idle types, jobs that lack only room; users: at most ten, longest wait first}
create or replace function odc.list_idle(p_filters jsonb, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_users    constant text[] := (select array_agg(x) from jsonb_array_elements_text(p_filters -> 'user') as x);
    v_accounts constant text[] := (select array_agg(x) from jsonb_array_elements_text(p_filters -> 'account') as x);
    v_types    constant text[] := (select array_agg(lower(x)) from jsonb_array_elements_text(p_filters -> 'gpu_type') as x);
begin
    return (
        with idle as materialized (
            select * from _idle_jobs(p_now)
        ), listed as materialized (
            select i.*, j.array_job_id, j.array_task_id, j.name, j.kind, j.user_name as "user", a.name as account, p.name as partition,
                   h.gpu_type, h.node_names, r.started_at, r.ends_at, g.util_ratio
              from idle as i
              join running as r on r.job_id = i.job_id
              join job as j on j.id = i.job_id
             cross join lateral (
                   select min(n.gpu_type) as gpu_type, json_agg(n.name order by l.rank) as node_names
                     from allocation as l join node as n on n.id = l.node_id where l.job_id = i.job_id) as h
              left join account as a on a.id = r.account_id
              left join partition as p on p.id = r.partition_id
              left join gpu_now as g on g.job_id = i.job_id and g.good_until > p_now
             where (v_users is null or j.user_name = any (v_users))
               and (v_accounts is null or a.name = any (v_accounts))
               and (v_types is null or h.gpu_type = any (v_types))
               and (p_filters ->> 'kind' is null or j.kind::text = p_filters ->> 'kind')
        ), fitting as (
            -- There are few shapes, however many jobs wait.
            select t.gpu_type, s.id as shape_id, s.node_count * s.gpus_per_node as gpus
              from (select distinct gpu_type from listed) as t
              join shape as s on s.gpus_per_node > 0 and (s.gpu_type is null or s.gpu_type = t.gpu_type)
             where exists (select from node_group as n where n.gpu_type = t.gpu_type and n.partition_ids && s.partition_ids)
        ), waiting_for as (
            select f.gpu_type, p.queued_at, p.open_count, p.open_count * f.gpus as gpus, j.user_name
              from fitting as f
              join pending as p on p.shape_id = f.shape_id and p.ready
              join job as j on j.id = p.job_id
        ), waiting as (
            select w.gpu_type, sum(w.open_count) as jobs, sum(w.gpus) as gpus, min(w.queued_at) as since,
                   (select json_agg(u.user_name order by u.since, u.user_name)
                      from (select x.user_name, min(x.queued_at) as since from waiting_for as x where x.gpu_type = w.gpu_type
                             group by x.user_name order by 2, 1 limit 10) as u) as users
              from waiting_for as w
             group by w.gpu_type
        )
        select json_build_object(
                   'source', m.source, 'idle_ratio', m.idle_ratio, 'idle_after_s', m.idle_after_s,
                   'jobs', (select coalesce(json_agg(json_build_object(
                                       'id', t.job_id, 'array_job_id', t.array_job_id, 'array_task_id', t.array_task_id,
                                       'name', t.name, 'kind', t.kind, 'user', t."user", 'account', t.account, 'partition', t.partition,
                                       'gpu_type', t.gpu_type, 'node_names', t.node_names, 'gpus', t.gpus, 'idle_gpus', t.idle_gpus,
                                       'idle_since', _iso(t.idle_since), 'lost_gpu_s', round(t.lost_gpu_s),
                                       'util_ratio', round(t.util_ratio::numeric, 4), 'alone_since', _iso(t.alone_since),
                                       'started_at', _iso(t.started_at), 'ends_at', _iso(t.ends_at))
                                   order by t.lost_gpu_s desc, t.job_id), '[]') from listed as t),
                   'waiting', (select coalesce(json_agg(json_build_object(
                                          'gpu_type', w.gpu_type, 'jobs', w.jobs, 'gpus', w.gpus, 'since', _iso(w.since), 'users', w.users)
                                      order by w.gpu_type), '[]') from waiting as w))::text
          from gpu_meter as m);
end;
$$;
