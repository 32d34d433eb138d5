-- odc._known_build: the build of a digest, for users who sent its context, and for operators.
-- Raises     OD038 UnknownBuild: it does not exist, or the user has not sent its context
create or replace function odc._known_build(p_actor jsonb, p_digest text, p_target text)
returns odc.build
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_build build;
begin
    select b.* into v_build
      from build as b
     where b.digest = p_digest and b.target = p_target
       and (coalesce((p_actor ->> 'operator')::boolean, false)
            or exists (select from build_asker as a where a.build_id = b.id and a.uid = (p_actor ->> 'uid')::integer));
    if v_build.id is null then
        raise exception using errcode = 'OD038',
            message = format('build %s does not exist, or its context is not yours', left(p_digest, 12)),
            hint = 'Send the context: odcctl reserve --dockerfile PATH.';
    end if;
    return v_build;
end;
$$;
