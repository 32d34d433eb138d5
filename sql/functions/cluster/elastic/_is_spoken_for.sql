-- odc._is_spoken_for: whether a job has its planned start on a node, or a booking for users includes it. Maintenance of
-- all nodes, which may repeat forever, keeps no node.
create or replace function odc._is_spoken_for(p_node_id integer, p_name text)
returns boolean
language sql stable
begin atomic
    select exists (select from odc.planned as p where p_name = any (p.node_names))
        or exists (select from odc.booking_node as m join odc.booking as b on b.id = m.booking_id
                    where m.node_id = p_node_id and b.kind = 'use' and b.state in ('PLANNED', 'ACTIVE'));
end;
