-- odc._lacks_image: whether the image of a build is still missing; null: the build does not exist.
create or replace function odc._lacks_image(p_build_id bigint)
returns boolean
language sql stable as $$
    select b.state <> 'completed' from odc.build as b where b.id = p_build_id
$$;
