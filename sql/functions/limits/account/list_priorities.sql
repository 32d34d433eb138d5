-- odc.list_priorities: the multifactor priority of pending jobs with its parts, highest first.
-- Arguments  p_job_ids, p_users, p_accounts, p_partitions  null: any
--            p_limit    maximum number of jobs
-- Returns    JSON {at, weights, max_age_s, half_life_s, jobs: [{id, user, account, qos, partition, policy, ordering,
--            priority, nice, factors: {age, ...: 0 to 1}, points: {age, ...}}], more}
create or replace function odc.list_priorities(
    p_job_ids bigint[], p_users text[], p_accounts text[], p_partitions text[], p_limit integer, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ids bigint[] := p_job_ids;
    v_set jsonb := show_accounting();
begin
    if num_nonnulls(p_users, p_accounts, p_partitions) > 0 then
        p_users := _known_as(p_users);
        v_ids := array(
            select p.job_id
              from pending as p
              join job as j on j.id = p.job_id
              join account as a on a.id = p.account_id
             where (p_job_ids is null or p.job_id = any (p_job_ids)) and (p_users is null or j.user_name = any (p_users))
               and (p_accounts is null or a.name = any (p_accounts))
               and (p_partitions is null or exists (select from partition as t where t.id = any (j.partition_ids) and t.name = any (p_partitions))));
    end if;
    return (
        with first as materialized (
            select * from _priority_parts(p_now, v_ids) as p order by p.score desc, p.job_id limit p_limit + 1
        ), shown as (
            select f.*, row_number() over (order by f.score desc, f.job_id) as place from first as f
        )
        select json_build_object(
                   'at', _iso(p_now), 'weights', v_set -> 'weights', 'max_age_s', v_set -> 'max_age_s', 'half_life_s', v_set -> 'half_life_s',
                   'jobs', coalesce(json_agg(json_build_object(
                       'id', s.job_id, 'user', j.user_name, 'account', a.name, 'qos', q.name, 'partition', t.name,
                       'policy', s.policy, 'ordering', s.ordering, 'priority', round(s.score / 1000000.0)::bigint, 'nice', s.nice,
                       'factors', json_build_object(
                           'age', s.age / 1000000.0::float8, 'size', s.size / 1000000.0::float8, 'fairshare', s.fair / 1000000.0::float8,
                           'qos', s.qos / 1000000.0::float8, 'partition', s.partition / 1000000.0::float8),
                       'points', json_build_object(
                           'age', round(s.age / 1000000.0 * (v_set -> 'weights' ->> 'age')::integer, 1)::float8,
                           'size', round(s.size / 1000000.0 * (v_set -> 'weights' ->> 'size')::integer, 1)::float8,
                           'fairshare', round(s.fair / 1000000.0 * (v_set -> 'weights' ->> 'fairshare')::integer, 1)::float8,
                           'qos', round(s.qos / 1000000.0 * (v_set -> 'weights' ->> 'qos')::integer, 1)::float8,
                           'partition', round(s.partition / 1000000.0 * (v_set -> 'weights' ->> 'partition')::integer, 1)::float8))
                       order by s.place) filter (where s.place <= p_limit), '[]'),
                   'more', count(*) > p_limit)::text
          from shown as s
          join job as j on j.id = s.job_id
          left join account as a on a.id = j.account_id
          left join qos as q on q.id = j.qos_id
          left join partition as t on t.id = j.partition_ids[1]);
end;
$$;
