-- odc._types_present: the types of the registered nodes, for people to read.
create or replace function odc._types_present()
returns text
language sql stable as $$
    select coalesce(string_agg(distinct g.gpu_type, ', '), 'none, because no node has registered')
      from odc.node_group as g
$$;
