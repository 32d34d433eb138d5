-- odc.read_build_log: the end of a build's output; of a build in progress, until a moment ago.
-- Raises     OD038 UnknownBuild
create or replace function odc.read_build_log(p_actor jsonb, p_digest text, p_target text)
returns text
language sql stable as $$
    select (odc._known_build(p_actor, p_digest, p_target)).log
$$;
