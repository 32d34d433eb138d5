-- odc._listed_nodes: the names of the nodes that a shape is limited to, by its node list and by its booking.
-- Returns    null: no limit
create or replace function odc._listed_nodes(p_shape odc.shape)
returns text[]
language sql stable as $$
    select case when p_shape.booking_id is null then p_shape.node_list
                else array(select n.name
                             from odc.booking_node as m
                             join odc.node as n on n.id = m.node_id
                            where m.booking_id = p_shape.booking_id
                              and (p_shape.node_list is null or n.name = any (p_shape.node_list))
                            order by n.name) end
$$;
