-- odc.show_build: a build, for users who sent its context. See _render_build.
-- Raises     OD038 UnknownBuild
create or replace function odc.show_build(p_actor jsonb, p_digest text, p_target text)
returns text
language sql stable as $$
    select odc._render_build(odc._known_build(p_actor, p_digest, p_target))
$$;
