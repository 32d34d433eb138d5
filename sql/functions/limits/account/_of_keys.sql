-- odc._of_keys: the keys of an object that another has, too.
create or replace function odc._of_keys(p_object jsonb, p_keys jsonb)
returns jsonb
language sql immutable as $$
    select coalesce(jsonb_object_agg(o.key, o.value), '{}') from jsonb_each(p_object) as o where p_keys ? o.key
$$;
