-- odc._named_shape: the parts of a job's shape that its request names: booking, licences, GPU type, features,
-- disk space and nodes.
-- Arguments  p_ask            the job as submitted
--            p_partition_ids  where it may run
-- Returns    the shape without its amounts
-- Raises     OD005 UnknownGpuType, OD007 UnknownNode, OD010 BadRequest, OD018 UnknownBooking, OD025 UnknownLicence
create or replace function odc._named_shape(p_ask jsonb, p_partition_ids integer[])
returns shape
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ask   record;
    v_shape shape;
begin
    select * into v_ask
      from jsonb_to_record(p_ask) as a (
           exclusive boolean, "constraint" text, node_list text[], exclude_nodes text[], gpu_type text, booking text,
           licences jsonb, tmp_mib bigint);
    v_shape.partition_ids := p_partition_ids;
    v_shape.gpu_type := v_ask.gpu_type;
    v_shape.exclusive := coalesce(v_ask.exclusive, false);
    v_shape.tmp_per_node_mib := least(coalesce(v_ask.tmp_mib, 0), 2147483647);
    v_shape.constraint_expr := nullif(regexp_replace(v_ask.constraint, '\s', '', 'g'), '');
    if v_ask.node_list is not null or v_ask.exclude_nodes is not null then
        v_shape.node_list := nullif(array(select distinct n from unnest(v_ask.node_list) as n order by n), '{}');
        v_shape.exclude_nodes := nullif(array(select distinct n from unnest(v_ask.exclude_nodes) as n order by n), '{}');
    end if;
    v_shape.licences := nullif(v_ask.licences, '{}');
    if v_shape.licences is not null then
        perform _check_licences(v_shape.licences);
    end if;
    if v_ask.booking is not null then
        v_shape.booking_id := (select b.id from booking as b
                                where b.name = v_ask.booking and b.state in ('PLANNED', 'ACTIVE'));
        if v_shape.booking_id is null then
            perform _refuse_no_booking(v_ask.booking, null);
        end if;
    end if;
    if v_shape.gpu_type is not null then
        perform _check_gpu_type(v_shape.gpu_type);
    end if;
    if v_shape.constraint_expr is not null then
        perform _check_constraint(v_shape.constraint_expr);
    end if;
    if v_shape.node_list is not null or v_shape.exclude_nodes is not null then
        perform _check_nodes(v_shape.node_list || v_shape.exclude_nodes);
    end if;
    return v_shape;
end;
$$;
