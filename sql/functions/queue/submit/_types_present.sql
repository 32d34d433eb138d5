-- odc._types_present: the GPU types of the registered nodes, and of nodes that elastic groups could have, in words.
create or replace function odc._types_present()
returns text
language sql stable as $$
    select coalesce(string_agg(distinct g.gpu_type, ', '), 'none, because no node has registered')
      from odc._kinds_present() as g
$$;
