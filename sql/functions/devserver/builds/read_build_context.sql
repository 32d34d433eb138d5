-- odc.read_build_context: the context that a build is made from; null: it is not kept.
create or replace function odc.read_build_context(p_build_id bigint)
returns bytea
language sql stable as $$
    select c.content from odc.build_context as c where c.build_id = p_build_id
$$;
