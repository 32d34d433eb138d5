-- odc._lay_out_step: distribute tasks over nodes: the first p_nodes nodes that have room for an equal part, otherwise those with
-- the most room; each gets at least one task, and as equal a number as the nodes allow.
-- Arguments  p_room   for each node, how many tasks it can take
--            p_nodes  how many nodes to use
-- Returns    for each node its number of tasks, 0 for an unused one; null: the tasks do not fit
create or replace function odc._lay_out_step(p_room integer[], p_nodes integer, p_tasks integer)
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_part   integer := ceil(p_tasks / p_nodes::numeric);
    v_chosen integer[];
    v_tasks  integer[] := array_fill(0, array[cardinality(p_room)]);
    v_left   integer := p_tasks;
    v_nodes  integer := p_nodes;
    v_at     integer;
    v_more   integer;
begin
    select array_agg(c.at order by c.at) into v_chosen
      from (select r.at from unnest(p_room) with ordinality as r (room, at)
             where r.room > 0
             order by r.room < v_part, case when r.room < v_part then -r.room end, r.at
             limit p_nodes) as c;
    if coalesce(cardinality(v_chosen), 0) < p_nodes then
        return null;
    end if;
    foreach v_at in array v_chosen loop
        v_more := least(p_room[v_at], ceil(v_left / v_nodes::numeric)::integer);
        v_tasks[v_at] := v_more;
        v_left := v_left - v_more;
        v_nodes := v_nodes - 1;
    end loop;
    foreach v_at in array v_chosen loop
        v_more := least(p_room[v_at] - v_tasks[v_at], v_left);
        v_tasks[v_at] := v_tasks[v_at] + v_more;
        v_left := v_left - v_more;
    end loop;
    return case when v_left = 0 then v_tasks end;
end;
$$;
