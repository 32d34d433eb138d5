-- odc._load_pass: the shapes and limits of a plan. The loaders describe the arrays: _plan_shapes, _plan_buckets,
-- _group_words.
-- Arguments  p_group_ids, p_blocks  the groups of _plan_nodes; whether topology blocks are known
--            p_shape_ids … p_reals  per class, as _plan_classes returns them;  p_claims  shapes of the jobs that claim nodes
--            the others  as for _decide_once
-- Returns    spans: what jobs have reserved of limits (nothing), see _limits_now
--            besides: per class: class_shapes: the position of its shape; defers: its policy has another order for backfill;
--            preempts: its jobs may end others; preempting: jobs of some QOS may. Per shape: dead, full, depths: how they are at the beginning (see
--            README.md, Dead and Depth). digest: of the shapes and limits, if p_digest is set
create or replace function odc._load_pass(
    p_now timestamptz, p_what_if jsonb, p_digest boolean, p_group_ids integer[], p_blocks boolean, p_shape_ids integer[],
    p_limits_s integer[], p_uids integer[], p_accounts integer[], p_qos_ids integer[], p_backfills text[], p_depths integer[],
    p_reals integer[], p_claims integer[],
    out shape_ids integer[], out leasts integer[], out mosts integer[], out gpus integer[], out cpus integer[], out mems integer[],
    out exclusives boolean[], out listed boolean[], out bookings integer[], out switches integer[], out waits_s integer[],
    out alt_from integer[], out alt_to integer[], out group_from integer[], out group_to integer[], out alt_groups integer[],
    out alt_partitions integer[], out alt_spreads boolean[], out alt_words bigint[], out component_from integer[],
    out component_to integer[], out component_shapes integer[], out component_ords integer[], out component_lists jsonb[],
    out refused text[],
    out dead integer[], out "full" boolean[], out depths integer[],
    out use_from integer[], out use_to integer[], out buckets integer[], out needs bigint[], out mores bigint[], out lefts bigint[],
    out consumes boolean[], out limit_reasons text[], out limit_scopes text[], out limit_scope_ids integer[], out limit_pers text[],
    out limit_whats text[], out limit_accounts integer[], out limit_uids integer[], out spans bigint[],
    out class_shapes integer[], out defers boolean[], out preempts boolean[], out preempting boolean, out digest bytea)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_mids integer[];
begin
    select s.ids, s.node_counts, s.node_maxes, s.gpus, s.cpus, s.mems, s.exclusives, s.listed, s.booking_ids,
           case when p_blocks then s.switches end, s.switches_waits_s, s.alt_from, s.alt_to, s.alt_group_from,
           s.alt_group_mid, s.alt_group_to, s.alt_groups, s.alt_partitions, s.alt_spreads, s.component_from,
           s.component_to, s.component_shapes, s.component_ords, s.component_lists, s.idle_reasons,
           case when p_digest then int8send(hash_record_extended(s, 0)) end
      into shape_ids, leasts, mosts, gpus, cpus, mems, exclusives, listed, bookings, switches, waits_s, alt_from, alt_to, group_from,
           v_mids, group_to, alt_groups, alt_partitions, alt_spreads, component_from, component_to, component_shapes, component_ords,
           component_lists, refused, digest
      from _plan_shapes(p_group_ids, p_shape_ids, p_what_if, p_claims) as s;
    select l.use_from, l.use_to, l.use_bucket, l.use_need, l.use_more, l.left, l.consumes, l.reasons, l.scopes, l.scope_ids, l.pers,
           l.whats, l.sharer_accounts, l.sharer_uids, digest || int8send(hash_record_extended(l, 0))
      into use_from, use_to, buckets, needs, mores, lefts, consumes, limit_reasons, limit_scopes, limit_scope_ids, limit_pers,
           limit_whats, limit_accounts, limit_uids, digest
      from _plan_buckets(p_now, p_reals, p_limits_s, p_uids, p_accounts, p_qos_ids, p_what_if) as l;
    spans := '{0}';
    for bucket in 1..coalesce(cardinality(lefts), 0) loop
        -- A job's end gives back no GPU-minutes, and a limit per job is not shared.
        spans := spans || array[0, case when consumes[bucket] and limit_whats[bucket] <> 'gpu_minutes' then 0 else 2 end, 0, 1, 0]::bigint[];
    end loop;
    alt_words := _group_words(group_from, v_mids, group_to, alt_groups, (cardinality(p_group_ids) + 59) / 60);

    select array_agg(case when u.reason is null then 2147483647 else -1 end order by u.o), array_agg(u.reason is not null order by u.o)
      into dead, "full" from unnest(refused) with ordinality as u (reason, o);
    select array_agg(array_position(shape_ids, u.id) order by u.o), array_agg(u.backfill <> 'order' order by u.o)
      into class_shapes, defers from unnest(p_shape_ids, p_backfills) with ordinality as u (id, backfill, o);
    depths := array_fill(0, array[cardinality(shape_ids)]);
    for class in 1..cardinality(class_shapes) loop
        -- A job that claims nodes is always protected.
        depths[class_shapes[class]] := case when p_shape_ids[class] < -1000000 then 1000000 else p_depths[class] end;
    end loop;
    preempts := array_fill(false, array[cardinality(class_shapes)]);
    preempting := exists (select from qos as q where q.preempts <> '{}');
    if preempting then
        select array_agg(u.id > -1000000 and refused[u.shape] is null and component_from[u.shape] > component_to[u.shape]
                         and exists (select from qos as q where q.id = u.qos and q.preempts <> '{}') order by u.o)
          into preempts from unnest(p_shape_ids, class_shapes, p_qos_ids) with ordinality as u (id, shape, qos, o);
    end if;
end;
$$;
