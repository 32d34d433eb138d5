-- odc._component_of: the component of a heterogeneous job, from 0, that a member belongs to.
-- Arguments  p_components  of its shape; null: the job is not heterogeneous;  p_member  from 1
-- Returns    null: the job is not heterogeneous
create or replace function odc._component_of(p_components jsonb, p_member bigint)
returns integer
language sql immutable set search_path = odc, pg_temp as $$
    select min(w.ord - 1)::integer
      from (select c.ord, sum((c.body -> 'node_count')::integer) over (order by c.ord) as upto
              from jsonb_array_elements(p_components) with ordinality as c (body, ord)) as w
     where w.upto >= p_member
$$;
