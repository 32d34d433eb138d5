-- odc._refuse_no_nodes: report why no node has the type, features, disk space and names that a shape requests.
-- Raises     OD008 NeverFits, always
create or replace function odc._refuse_no_nodes(p_shape shape)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_asked text;
    v_where text := (select string_agg(format('"%s"', p.name), ', ' order by array_position(p_shape.partition_ids, p.id)) from partition as p
                      where p.id = any (p_shape.partition_ids));
begin
    if not exists (select from node_free) then
        raise exception using errcode = 'OD008',
            message = 'no node could ever run it: no node has registered',
            hint = 'Wait until the daemon has found its nodes, or declare one: odcd up --node NAME=TYPE:GPUS.';
    end if;
    v_asked := concat_ws(' and ',
        'is of type "' || p_shape.gpu_type || '"',
        'has the features "' || p_shape.constraint_expr || '"',
        'has ' || _mib(nullif(p_shape.tmp_per_node_mib, 0)) || ' of disk space',
        'is among those listed (' || array_to_string(p_shape.node_list, ', ') || ')',
        (select format('is in booking "%s" (%s)', b.name, coalesce(
                           (select _fold_names(array_agg(n.name)) from booking_node as m join node as n on n.id = m.node_id
                             where m.booking_id = b.id), 'which has no nodes'))
           from booking as b where b.id = p_shape.booking_id),
        case when p_shape.exclude_nodes is not null then 'is not excluded' end);
    raise exception using errcode = 'OD008',
        message = case when v_asked = '' then format('no node could ever run it: partition %s has no nodes', v_where)
                       else format('no node could ever run it: no node of partition %s %s', v_where, v_asked) end,
        hint = case when p_shape.tmp_per_node_mib > 0
                    then format('The most disk space of a node is %s. ', (select _mib(max(tmp_mib)) from _kinds_present())) else '' end
            || format('GPU types: %s. Features: %s.', _types_present(),
            (select coalesce(string_agg(distinct f, ', '), 'none')
               from _kinds_present() as g cross join unnest(g.features) as f));
end;
$$;
