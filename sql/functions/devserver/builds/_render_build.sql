-- odc._render_build: a build as the API returns it.
create or replace function odc._render_build(p_build odc.build)
returns text
language sql stable as $$
    select json_build_object(
               'id', p_build.id, 'digest', p_build.digest, 'state', p_build.state, 'dockerfile', p_build.dockerfile, 'image', p_build.image,
               'step', p_build.step, 'error', p_build.error, 'asked_by', p_build.asked_by, 'asked_at', odc._iso(p_build.asked_at),
               'started_at', odc._iso(p_build.started_at), 'ended_at', odc._iso(p_build.ended_at), 'attempts', p_build.attempt)::text
$$;
