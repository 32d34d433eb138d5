-- odc._describe_job: the job at hand in a walk over the queue, in the columns of candidate. Inlined.
-- Arguments  p_waited_s  how long it has waited. A wish for few topology blocks lapses after a while
create or replace function odc._describe_job(
    p_shapes odc.shape_lists, p_job_id bigint, p_class integer, p_shape integer, p_limit_s integer, p_waited_s numeric)
returns odc.candidate
language sql immutable as $$
    select row(
        p_job_id, p_class, p_shape, p_limit_s,
        case when p_limit_s = 2147483647 then 4000000000000000000 else p_limit_s::bigint * 1000000 end,
        p_shapes.depths[p_shape], p_shapes.shape_ids[p_shape] < -1000000,
        p_shapes.leasts[p_shape], p_shapes.mosts[p_shape], p_shapes.gpus[p_shape], p_shapes.cpus[p_shape], p_shapes.mems[p_shape],
        p_shapes.exclusives[p_shape], p_shapes.bookings[p_shape],
        case when p_shapes.waits_s[p_shape] <= p_waited_s then null else p_shapes.switches[p_shape] end,
        case when p_shapes.switches[p_shape] is not null then ((p_shapes.waits_s[p_shape] - p_waited_s) * 1000000)::bigint end,
        case when p_shapes.switches[p_shape] is null or p_shapes.waits_s[p_shape] <= p_waited_s then p_shape
             else p_shape + cardinality(p_shapes.shape_ids) end,
        p_shapes.alt_from[p_shape], p_shapes.alt_to[p_shape],
        p_shapes.group_from[p_shapes.alt_from[p_shape]], p_shapes.group_to[p_shapes.alt_to[p_shape]],
        p_shapes.use_from[p_class], p_shapes.use_to[p_class])::odc.candidate
$$;
