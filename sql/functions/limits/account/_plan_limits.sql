-- odc._plan_limits: the limits that apply to classes of pending jobs, and the amounts left. Without limits it reads
-- one empty table and returns nulls. It is one function, because the parts read each other's arrays.
-- Arguments  parallel, one per class: shape, time limit, user, account, QOS; p_what_if: as of decide, where a shape
--            is negative: -1, -2, …
-- Returns    use_from, use_to  per class its span of use_*, counted from 1; from > to if no limit applies
--            use_bucket, use_need  a limit, and the amount that one job of the class needs; with more than `left` it is
--            skipped
--            use_more     the additional amount for each node above its minimum number
--            left, consumes, reasons  per limit: the amount left, whether a start consumes it, Slurm's name.
--            Limits per job are included only for classes whose jobs exceed them
--            scopes, scope_ids, pers, whats, sharer_accounts, sharer_uids  per limit: which it is, as _limits_of returns it
create or replace function odc._plan_limits(
    p_now timestamptz, p_class_shapes integer[], p_class_limits_s integer[], p_class_uids integer[],
    p_class_accounts integer[], p_class_qos integer[], p_what_if jsonb default null,
    out use_from integer[], out use_to integer[], out use_bucket integer[], out use_need bigint[], out use_more bigint[],
    out "left" bigint[], out consumes boolean[], out reasons text[], out scopes text[], out scope_ids integer[], out pers text[],
    out whats text[], out sharer_accounts integer[], out sharer_uids integer[])
language plpgsql stable set search_path = odc, pg_temp set enable_nestloop = off as $$
declare
    -- asks: groups of classes that differ only in shape and time
    v_uids integer[];  v_accounts integer[];  v_qos integer[];  v_partitions text[];
    -- classes
    v_ask integer[];  v_amounts bigint[];       -- nodes, GPUs, CPUs, GPU-milliseconds, nodes that may be added: five per class
    -- limits of an ask, one ask after the other
    v_first integer[];  v_last integer[];  v_bucket integer[];  v_what integer[];  v_job boolean[];
    -- limits
    v_values bigint[];
    v_m    integer := 0;
    v_c    integer;
    v_need bigint;
    v_more bigint;
begin
    if not exists (select from resource_limit) then
        return;
    end if;
    with asked as materialized (
        select s.id, s.partition_ids, a.nodes, a.gpus, a.cpus, greatest(0, s.node_count_max - s.node_count) as more
          from shape as s
         cross join lateral _shape_amounts(s) as a
         where s.id = any (p_class_shapes)
         union all
        select -w.n::integer, s.partition_ids, a.nodes, a.gpus, a.cpus, greatest(0, s.node_count_max - s.node_count)
          from jsonb_array_elements(p_what_if) with ordinality as w (body, n)
         cross join lateral jsonb_populate_record(null::shape, '{"exclusive": false}' || jsonb_strip_nulls(w.body)) as s
         cross join lateral _shape_amounts(s) as a
    ), class as (
        select c.ord, c.uid, c.account_id, c.qos_id, coalesce(s.partition_ids::text, '{}') as partitions,
               dense_rank() over (order by c.uid, c.account_id, c.qos_id, s.partition_ids) as ask,
               case when s.id is null then '{0,0,0,0,0}'
                    else array[s.nodes, s.gpus, s.cpus,
                               _limit_need('gpu_minutes', 0, s.gpus, 0, c.limit_s, q.usage_factor), s.more] end as amounts
          from unnest(p_class_shapes, p_class_uids, p_class_accounts, p_class_qos, p_class_limits_s) with ordinality
               as c (shape_id, uid, account_id, qos_id, limit_s, ord)
          join qos as q on q.id = c.qos_id
          left join asked as s on s.id = c.shape_id
    ), ask as (
        select distinct ask, uid, account_id, qos_id, partitions from class
    )
    select (select array_agg(c.ask order by c.ord) from class as c),
           (select array_agg(m.amount order by c.ord, m.n)
              from class as c cross join lateral unnest(c.amounts) with ordinality as m (amount, n)),
           array_agg(uid order by ask), array_agg(account_id order by ask), array_agg(qos_id order by ask),
           array_agg(partitions order by ask)
      into v_ask, v_amounts, v_uids, v_accounts, v_qos, v_partitions
      from ask;

    with held as materialized (
        select m.*, dense_rank() over (order by m.scope, m.scope_id, m.per, m.what, m.b_account, m.b_uid)::integer as bucket
          from _limits_of(v_uids, v_accounts, v_qos, v_partitions) as m
         where m.what <> 'submitted'
    ), placed as (
        select h.ord, h.bucket, h.per = 'job' as job,
               array_position('{nodes,gpus,cpus,gpu_minutes,jobs,wall_s}', h.what) as what,
               row_number() over (order by h.ord, h.bucket)::integer as place
          from held as h
    ), span as (
        select o.ord, min(p.place) as first, max(p.place) as last
          from generate_series(1, cardinality(v_uids)) as o (ord)
          left join placed as p on p.ord = o.ord
         group by o.ord
    ), bucket as (
        select distinct h.bucket, h.scope, h.scope_id, h.per, h.what, h.value, h.b_account, h.b_uid from held as h
    )
    select (select array_agg(coalesce(s.first, 1) order by s.ord) from span as s),
           (select array_agg(coalesce(s.last, 0) order by s.ord) from span as s),
           (select array_agg(p.bucket order by p.place) from placed as p),
           (select array_agg(p.what order by p.place) from placed as p),
           (select array_agg(p.job order by p.place) from placed as p),
           array_agg(b.scope order by b.bucket), array_agg(b.scope_id order by b.bucket),
           array_agg(b.per order by b.bucket), array_agg(b.what order by b.bucket),
           array_agg(b.value order by b.bucket), array_agg(b.b_account order by b.bucket),
           array_agg(b.b_uid order by b.bucket)
      into v_first, v_last, v_bucket, v_what, v_job, scopes, scope_ids, pers, whats, v_values, sharer_accounts, sharer_uids
      from bucket as b;
    if v_bucket is null then
        return;
    end if;

    select array_agg(case when l.what = 'gpu_minutes' then l.value * 60000 else l.value end - coalesce(u.used, 0) order by l.n),
           array_agg(l.per <> 'job' order by l.n), array_agg(_limit_reason(l.scope, l.per, l.what) order by l.n)
      into "left", consumes, reasons
      from unnest(scopes, pers, whats, v_values) with ordinality
           as l (scope, per, what, value, n)
      left join _limit_use(p_now, scopes, scope_ids, pers, whats, sharer_accounts, sharer_uids) as u on u.n = l.n;

    use_from := '{}';  use_to := '{}';  use_bucket := '{}';  use_need := '{}';  use_more := '{}';
    for c in 1 .. cardinality(v_ask) loop
        use_from[c] := v_m + 1;
        v_c := 5 * (c - 1);
        for l in v_first[v_ask[c]] .. v_last[v_ask[c]] loop
            v_need := case when v_what[l] <= 4 then v_amounts[v_c + v_what[l]]
                           when v_what[l] = 5 then 1 else p_class_limits_s[c] end;
            v_more := case when v_amounts[v_c + 5] > 0 and v_what[l] <= 4 and v_need < 9000000000000000000
                           then v_need / v_amounts[v_c + 1] else 0 end;
            if v_need > 0 and (not v_job[l] or v_need + v_amounts[v_c + 5] * v_more > "left"[v_bucket[l]]) then
                v_m := v_m + 1;
                use_bucket[v_m] := v_bucket[l];
                use_need[v_m] := v_need;
                use_more[v_m] := v_more;
            end if;
        end loop;
        use_to[c] := v_m;
    end loop;
end;
$$;
