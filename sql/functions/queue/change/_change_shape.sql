-- odc._change_shape: the shape of a job after a change of its booking or partitions. A new time limit or begin time of a
-- pending job is checked against its booking.
-- Arguments  p_job      the job as it is
--            p_shape    its shape
--            p_booking  the name of its booking; null: it has none
-- Returns    the shape, stored under its id if the partitions or the booking are to change
-- Locks      shape, as _shape_id
-- Raises     OD016 NotImplementedYet: of a heterogeneous job; as _resolve_booking, _resolve_partitions, _check_max_nodes, _refuse_no_nodes and _check_fits
create or replace function odc._change_shape(
    p_job odc.job, p_shape odc.shape, p_booking text, p_place text, p_operator boolean, p_changes jsonb, p_now timestamptz)
returns shape
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_shape shape := p_shape;
    v_limit constant integer := coalesce((p_changes ->> 'time_limit_s')::integer, p_job.time_limit_s);
    v_from  timestamptz;
begin
    if p_changes ? 'booking' then
        v_shape.booking_id := null;
    end if;
    if p_changes ->> 'booking' is not null
       or v_shape.booking_id is not null and p_place = 'pending' and p_changes ?| '{time_limit_s,begin_at}' then
        v_from := greatest(p_now, case when p_changes ? 'begin_at' then (p_changes ->> 'begin_at')::timestamptz
                                       else p_job.begin_at end);
        select r.booking_id into v_shape.booking_id
          from _resolve_booking(coalesce(p_changes ->> 'booking', p_booking), p_job.uid, p_job.user_name, p_operator,
                                p_job.account_id, v_from, v_limit, null) as r;
    end if;
    if not p_changes ?| '{partitions,booking}' then
        return v_shape;
    end if;
    if v_shape.components is not null then
        raise exception using errcode = 'OD016',
            message = format('the partition and the booking of a heterogeneous job cannot be changed: job %s is one', p_job.id),
            hint = 'Cancel it, and submit it again.';
    end if;

    if p_changes ? 'partitions' then
        select r.partition_ids into v_shape.partition_ids
          from _resolve_partitions(_words(p_changes -> 'partitions'), v_limit) as r;
        perform _check_max_nodes(v_shape.partition_ids, v_shape.node_count);
    end if;
    if not exists (select from _possible_nodes(v_shape.partition_ids, v_shape.gpu_type, v_shape.constraint_expr,
                                               _listed_nodes(v_shape), v_shape.exclude_nodes, v_shape.tmp_per_node_mib)) then
        perform _refuse_no_nodes(v_shape);
    end if;
    perform _check_fits(v_shape, array_agg(n.partition_id), array_agg(n.gpu_type), array_agg(n.gpus), array_agg(n.cpus),
                        array_agg(n.mem_mib), array_agg(n.domain), array_agg(n.node_count))
       from _possible_nodes(v_shape.partition_ids, v_shape.gpu_type, v_shape.constraint_expr,
                            _listed_nodes(v_shape), v_shape.exclude_nodes, v_shape.tmp_per_node_mib) as n;
    v_shape.id := _shape_id(v_shape);
    return v_shape;
end;
$$;
