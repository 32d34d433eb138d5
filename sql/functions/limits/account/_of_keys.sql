-- odc._of_keys: the part of an object whose keys p_keys also has.
create or replace function odc._of_keys(p_object jsonb, p_keys jsonb)
returns jsonb
language sql immutable as $$
    select coalesce(jsonb_object_agg(o.key, o.value), '{}') from jsonb_each(p_object) as o where p_keys ? o.key
$$;
