-- odc._check_orders: refuse partitions that would serve the same nodes in two orders at once.
-- Raises     OD012 WrongState: two of one tier share nodes and have different policies
create or replace function odc._check_orders()
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_two record;
begin
    select a.name as a, a.policy as a_policy, b.name as b, b.policy as b_policy, a.tier into v_two
      from partition as a
      join partition as b on b.tier = a.tier and b.name > a.name and b.policy <> a.policy
     where a.all_nodes and b.all_nodes
        or exists (select from node as n
                    where (a.all_nodes or exists (select from partition_node as m where m.partition_id = a.id and m.node_id = n.id))
                      and (b.all_nodes or exists (select from partition_node as m where m.partition_id = b.id and m.node_id = n.id)))
     order by a.name, b.name limit 1;
    if found then
        raise exception using errcode = 'OD012',
            message = format('partitions "%s" (policy %s) and "%s" (policy %s) share nodes and both have tier %s: their jobs '
                             'would have no common order', v_two.a, v_two.a_policy, v_two.b, v_two.b_policy, v_two.tier),
            hint = format('Give them different tiers: odcctl partition edit %s --tier %s; or give both the same policy.',
                          v_two.b, case when v_two.tier < 65533 then v_two.tier + 1 else v_two.tier - 1 end);
    end if;
end;
$$;
