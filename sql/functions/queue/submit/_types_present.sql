-- odc._types_present: the GPU types of the registered nodes in words.
create or replace function odc._types_present()
returns text
language sql stable as $$
    select coalesce(string_agg(distinct g.gpu_type, ', '), 'none, because no node has registered')
      from odc.node_group as g
$$;
