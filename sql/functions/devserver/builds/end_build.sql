-- odc.end_build: record the result of an attempt to build. An attempt that is not the current one is ignored.
-- Arguments  p_image  by digest; null: there is none
--            p_error  the reason, as its user reads it
--            p_lost   the result is unknown: the build is retried, at most three attempts in all
-- Returns    whether the reservations that waited can continue
-- Locks      term for share; the turn; build, pending, job
-- Raises     OD020 LeadershipLost
create or replace function odc.end_build(
    p_term bigint, p_build_id bigint, p_attempt integer, p_image text, p_error text, p_lost boolean, p_log text, p_now timestamptz)
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_tries constant integer := 3;
    v_build build;
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    update build as b
       set state = case when p_image is not null then 'completed' when p_lost and b.lost + 1 < v_tries then 'queued' else 'failed' end::build_state,
           image = p_image, error = case when p_image is null then p_error end, lost = b.lost + p_lost::integer, ended_at = p_now, step = null,
           log = coalesce(p_log, b.log)
     where b.id = p_build_id and b.attempt = p_attempt and b.state = 'building'
    returning * into v_build;
    if v_build.id is null then
        return false;
    end if;
    insert into event (at, kind, actor, detail)
    values (p_now, 'build_ended', 'odcd',
            jsonb_strip_nulls(jsonb_build_object('build', v_build.id, 'digest', v_build.digest, 'attempt', p_attempt, 'state', v_build.state,
                                                 'image', v_build.image, 'error', v_build.error)));
    if v_build.state = 'failed' then
        perform _fail_build_waiters(v_build.id, p_error, p_now);
    else
        perform _judge_needs('{}', p_now, array(select _build_waiters(v_build.id)));
    end if;
    if v_build.state <> 'queued' then
        delete from build_context as c where c.build_id = v_build.id;
    end if;
    perform _wake();
    return v_build.state = 'completed';
end;
$$;
