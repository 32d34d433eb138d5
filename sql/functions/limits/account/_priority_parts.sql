-- odc._priority_parts: the multifactor priority of pending jobs, factor by factor, as a pass would compute it now.
-- Arguments  p_job_ids  null: all of them
-- Returns    factors in millionths; score: millionths of a point, as _multifactor_score; policy: the policy of the job's
--            (first) partition, and ordering its formula: the score decides there only if that is multifactor
create or replace function odc._priority_parts(p_now timestamptz, p_job_ids bigint[])
returns table (job_id bigint, score bigint, age integer, size integer, fair integer, qos integer, partition integer,
               nice integer, policy text, ordering text)
language sql stable as $$
    with total as materialized (
        select greatest(1, (select count(*) from odc.node)) as nodes, greatest(1, (select sum(gpus) from odc.node)) as gpus,
               greatest(1, (select max(priority) from odc.qos)) as qos, greatest(1, (select max(tier) from odc.partition)) as tier,
               (select jsonb_object_agg(factor, weight) from odc.priority_weight) as w, s.max_age_s
          from odc.priority_setting as s
    ), fair as materialized (
        select f.account_id, f.uid, f.factor from odc._fair_share(p_now) as f
    ), part as (
        select p.job_id, p.nice, t.policy, y.ordering, o.w, o.max_age_s, greatest(0, date_part('epoch', p_now - p.queued_at))::bigint as wait_s,
               (500000::bigint * s.node_count / o.nodes
                + 500000::bigint * s.node_count * s.gpus_per_node / o.gpus)::integer as size,
               coalesce(f.factor, 500000) as fair, (1000000::bigint * q.priority / o.qos)::integer as qos,
               (1000000::bigint * t.tier / o.tier)::integer as partition
          from odc.pending as p
          join odc.shape as s on s.id = p.shape_id
          join odc.partition as t on t.id = s.partition_ids[1]
          join odc.policy as y on y.name = t.policy
          join odc.qos as q on q.id = p.qos_id
         cross join total as o
          left join fair as f on f.account_id = p.account_id and f.uid = p.uid
         where p_job_ids is null or p.job_id = any (p_job_ids)
    )
    select p.job_id,
           odc._multifactor_score(p.wait_s, p.size, p.fair, p.qos, p.partition, p.nice, (p.w ->> 'age')::integer,
                                  (p.w ->> 'size')::integer, (p.w ->> 'fairshare')::integer, (p.w ->> 'qos')::integer,
                                  (p.w ->> 'partition')::integer, p.max_age_s),
           (least(p.wait_s, p.max_age_s) * 1000000 / p.max_age_s)::integer, p.size, p.fair, p.qos, p.partition, p.nice,
           p.policy, p.ordering
      from part as p
$$;
