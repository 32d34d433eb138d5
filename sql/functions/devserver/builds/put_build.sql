-- odc.put_build: store a context to build for a user who reserves with it. A build that is completed has an image at
-- once; a build that failed may be retried.
-- Arguments  p_context  tar, gzip: as odc packed it, so that the digest identifies its content
--            p_anew     build it again even if it has an image
-- Returns    the build: see _render_build
-- Locks      build
-- Raises     OD009 LimitExceeded: too many contexts of this user are kept
create or replace function odc.put_build(
    p_actor jsonb, p_digest text, p_target text, p_dockerfile text, p_context bytea, p_anew boolean, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_most  constant integer := 50;
    v_uid   constant integer := (p_actor ->> 'uid')::integer;
    v_user  constant text := p_actor ->> 'user';
    v_build build;
begin
    perform _take_turn(p_now);
    insert into build (digest, target, dockerfile, asked_by, asked_uid, asked_at)
    values (p_digest, p_target, p_dockerfile, v_user, v_uid, p_now)
        on conflict (digest, target) do nothing;
    select * into v_build from build as b where b.digest = p_digest and b.target = p_target for update;
    if v_build.state = 'failed' or v_build.state = 'completed' and p_anew then
        update build as b
           set state = 'queued', image = null, error = null, step = null, log = '', lost = 0, made_at = null, started_at = null, ended_at = null,
               asked_by = v_user, asked_uid = v_uid, asked_at = p_now
         where b.id = v_build.id
        returning * into v_build;
        perform _judge_needs('{}', p_now, array(select _build_waiters(v_build.id)));
    end if;
    if v_build.state in ('queued', 'building') and not exists (select from build_context as c where c.build_id = v_build.id) then
        if (select count(*) from build_context as c where c.uid = v_uid and c.at > p_now - interval '1 day') >= v_most then
            raise exception using errcode = 'OD009',
                message = format('user %s already has %s contexts that wait to be built, the maximum', v_user, v_most),
                hint = 'A context is removed once it is built, or after a day. Reserve with one of them, or wait.';
        end if;
        insert into build_context (build_id, content, uid, at) values (v_build.id, p_context, v_uid, p_now);
        insert into event (at, kind, actor, detail)
        values (p_now, 'build_asked', v_user, jsonb_build_object('build', v_build.id, 'digest', p_digest, 'bytes', length(p_context)));
    else
        -- It is needed again: it is kept for another day.
        update build_context as c set at = p_now where c.build_id = v_build.id;
    end if;
    insert into build_asker (build_id, uid) values (v_build.id, v_uid) on conflict do nothing;
    return _render_build(v_build);
end;
$$;
