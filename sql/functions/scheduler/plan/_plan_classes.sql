-- odc._plan_classes: the classes of ready jobs, each with its head and the values that its policy needs to score it.
-- The jobs of a class have equal shape, time limit, user, account, QOS and nice; they stay in the order of their queue
-- times. A loose index scan finds the heads, so the cost depends on the number of classes, not of jobs.
-- A job that claims the nodes of its victims is a class of its own, before the jobs of all tiers.
-- Of each user, the classes whose heads have waited longest are taken, so that no user's queue makes a pass long.
-- Arguments  p_what_if  hypothetical jobs, a class each, queued last: shape and job ids -1, -2, …
--            p_without  ignore claims of these jobs
--            p_promised     these claim the nodes on which they were planned, for their planned start
--            p_only     only these jobs; null: all. A single job needs no fair share: it is compared with none
-- Returns    parallel arrays, a position per class. fairs: fair share in millionths; statics: the part of
--            multifactor that does not change with the wait; age_per_s, max_age_s: the part that does;
--            claim_jobs, claim_shapes, claim_nodes, claim_ats: the jobs that claim nodes, and their planned starts,
--            in this order; null: there are none. The shape_id of such a class is -1000000 - its position there;
--            kept_shape_ids has its real shape
create or replace function odc._plan_classes(
    p_now timestamptz, p_what_if jsonb, p_without bigint[], p_promised bigint[], p_only bigint[] default null,
    out shape_ids integer[], out limits_s integer[], out uids integer[], out accounts integer[], out qos_ids integer[],
    out nices integer[], out head_ats timestamptz[], out head_ids bigint[], out head_counts integer[],
    out tiers integer[], out orderings text[], out max_waits_s integer[], out backfills text[], out depths integer[],
    out sizes integer[], out fairs integer[], out statics float8[], out age_weight integer, out max_age_s integer,
    out kept_shape_ids integer[], out claim_jobs bigint[], out claim_shapes integer[], out claim_nodes text[],
    out claim_ats timestamptz[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_most    constant integer := 1000;     -- classes of one user; of heterogeneous jobs, components count
    v_fair    boolean;
    v_sized   boolean;          -- a policy compares sizes with the cluster's
    v_weights jsonb;
    v_fair_accounts integer[];  v_fair_uids integer[];  v_fair_factors integer[];
    v_nodes bigint;  v_gpus bigint;  v_qos bigint;  v_tier bigint;   -- the values at which a factor is 1
begin
    select bool_or(y.ordering in ('multifactor', 'odc')), bool_or(y.ordering = 'multifactor') into v_fair, v_sized
      from partition as p join policy as y on y.name = p.policy;
    if v_fair then
        select jsonb_object_agg(factor, weight) into v_weights from priority_weight;
        if v_sized then
            select greatest(1, count(*)), greatest(1, sum(n.gpus)) into v_nodes, v_gpus from node as n;
            select greatest(1, max(q.priority)) into v_qos from qos as q;
            select greatest(1, max(t.tier)) into v_tier from partition as t;
        end if;
        age_weight := (v_weights ->> 'age')::integer;
        select s.max_age_s into max_age_s from priority_setting as s;
        select array_agg(f.account_id), array_agg(f.uid), array_agg(f.factor)
          into v_fair_accounts, v_fair_uids, v_fair_factors from _fair_share(p_now) as f
         where p_only is null or cardinality(p_only) > 1;
    end if;

    select array_agg(p.job_id order by p.at, p.job_id), array_agg(p.shape_id order by p.at, p.job_id),
           array_agg(array_to_string(p.nodes, ',') order by p.at, p.job_id), array_agg(p.at order by p.at, p.job_id)
      into claim_jobs, claim_shapes, claim_nodes, claim_ats
      from (select p.job_id, p.shape_id, p.claim_nodes as nodes, p.claim_ends_at - _claim_margin() as at
              from pending as p
             where p.claim_nodes is not null and p.ready and (p_without is null or p.job_id <> all (p_without))
               and (p_only is null or p.job_id = any (p_only))
             union all
            select p.job_id, p.shape_id, array(select n.id from node as n where n.name = any (o.node_names)), o.planned_start_at
              from unnest(p_promised) as k (job_id)
              join planned as o on o.job_id = k.job_id
              join pending as p on p.job_id = k.job_id) as p
     where not exists (select from unnest(p.nodes) as u (id) left join node_free as f on f.node_id = u.id
                        where f.up is not true);

    with recursive head as (
        (select p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id, p.nice, p.queued_at, p.job_id, p.open_count
           from pending as p
          where p.ready and p_only is null
          order by p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id, p.nice, p.queued_at, p.job_id
          limit 1)
        union all
        select n.*
          from head as h
         cross join lateral (
               select p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id, p.nice, p.queued_at, p.job_id, p.open_count
                 from pending as p
                where p.ready
                  and (p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id, p.nice)
                    > (h.shape_id, h.time_limit_s, h.uid, h.account_id, h.qos_id, h.nice)
                order by p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id, p.nice, p.queued_at, p.job_id
                limit 1) as n
    ), ranked as (
        select h.*, row_number() over (partition by h.uid order by h.queued_at, h.job_id) as place from head as h
    ), counted as (
        select r.*, sum(coalesce(jsonb_array_length(s.components), 1))
                    over (partition by r.uid order by r.place rows between unbounded preceding and 1 preceding) as before
          from ranked as r join shape as s on s.id = r.shape_id
         where r.place <= v_most
    ), asked as (
        select h.*, h.shape_id as kept_id, s.partition_ids[1] as partition_id, s.node_count, s.gpus_per_node, s.cpus_per_node
          from (select r.shape_id, r.time_limit_s, r.uid, r.account_id, r.qos_id, r.nice, r.queued_at, r.job_id, r.open_count
                  from counted as r
                 where coalesce(r.before, 0) < v_most
                 union all
               (select distinct on (p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id, p.nice)
                       p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id, p.nice, p.queued_at, p.job_id, p.open_count
                  from unnest(p_only) as o (job_id) join pending as p on p.job_id = o.job_id
                 where p.ready
                 order by p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id, p.nice, p.queued_at, p.job_id)) as h
          join shape as s on s.id = h.shape_id
         union all
        select -w.ord::integer, w.time_limit_s, coalesce(w.uid, -1), coalesce(w.account_id, 1), coalesce(w.qos_id, 1),
               coalesce(w.nice, 0), p_now + interval '1 microsecond' * w.ord, -w.ord, 1, -w.ord::integer,
               w.partition_ids[1], w.node_count, w.gpus_per_node, w.cpus_per_node
          from rows from (jsonb_to_recordset(coalesce(p_what_if, '[]')) as (
               time_limit_s integer, uid integer, account_id integer, qos_id integer, nice integer,
               partition_ids integer[], node_count integer, gpus_per_node integer, cpus_per_node integer))
               with ordinality as w (
               time_limit_s, uid, account_id, qos_id, nice, partition_ids, node_count, gpus_per_node, cpus_per_node, ord)
         union all
        select -1000000 - c.ord::integer, p.time_limit_s, p.uid, p.account_id, p.qos_id, p.nice, p.queued_at, p.job_id, 1,
               p.shape_id, s.partition_ids[1], s.node_count, s.gpus_per_node, s.cpus_per_node
          from unnest(claim_jobs) with ordinality as c (job_id, ord)
          join pending as p on p.job_id = c.job_id
          join shape as s on s.id = p.shape_id
    ), class as (
        select a.*, case when a.shape_id < -1000000 then 3000000 + a.shape_id else t.tier end as tier,
               y.ordering, y.max_wait_s, y.backfill, y.plan_depth,
               a.node_count * case when a.gpus_per_node > 0 then a.gpus_per_node else a.cpus_per_node end as size,
               coalesce(f.factor, 500000) as fair,
               case when y.ordering = 'multifactor' then _multifactor_score(
                   0, (500000::bigint * a.node_count / v_nodes
                       + 500000::bigint * a.node_count * a.gpus_per_node / v_gpus)::integer,
                   coalesce(f.factor, 500000), (1000000::bigint * q.priority / v_qos)::integer,
                   (1000000::bigint * t.tier / v_tier)::integer, a.nice,
                   0, (v_weights ->> 'size')::integer, (v_weights ->> 'fairshare')::integer,
                   (v_weights ->> 'qos')::integer, (v_weights ->> 'partition')::integer, 1) end as static
          from asked as a
          join partition as t on t.id = a.partition_id
          join policy as y on y.name = t.policy
          join qos as q on q.id = a.qos_id
          left join unnest(v_fair_accounts, v_fair_uids, v_fair_factors) as f (account_id, uid, factor)
            on f.account_id = a.account_id and f.uid = a.uid
    )
    select array_agg(shape_id), array_agg(time_limit_s), array_agg(uid), array_agg(account_id), array_agg(qos_id),
           array_agg(nice), array_agg(queued_at), array_agg(job_id), array_agg(open_count),
           array_agg(tier), array_agg(ordering), array_agg(max_wait_s), array_agg(backfill), array_agg(plan_depth),
           array_agg(size), array_agg(fair), array_agg(static), array_agg(kept_id)
      into shape_ids, limits_s, uids, accounts, qos_ids, nices, head_ats, head_ids, head_counts,
           tiers, orderings, max_waits_s, backfills, depths, sizes, fairs, statics, kept_shape_ids
      -- Sorted here: joins return rows in any order, and the digest of the input covers whole arrays.
      from (select * from class
             order by shape_id < 0, abs(shape_id), time_limit_s, uid, account_id, qos_id, nice) as class;
end;
$$;
