-- odc.take_builds: the builds to run now. Begins builds that reservations wait for, drops those that no reservation
-- waits for any longer, ends reservations whose build failed before they were submitted, and deletes old contexts.
-- Arguments  p_most  maximum number of builds at the same time
-- Returns    the builds in progress: the cluster must have one Job for each attempt, and no other. made: the Job
--            existed before, so if it is missing now it was lost
-- Locks      term for share; the turn; build
-- Raises     OD020 LeadershipLost
create or replace function odc.take_builds(p_term bigint, p_most integer, p_now timestamptz)
returns table (id bigint, attempt integer, digest text, target text, dockerfile text, uid integer, made boolean, started_at timestamptz)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_wanted bigint[];
    v_build  record;
begin
    perform _hold_term(p_term);
    if not exists (select from pending as p where p.lacks = 'image') and not exists (select from build as b where b.state = 'building')
       and not exists (select from build_context) then
        return;
    end if;
    perform _take_turn(p_now);
    v_wanted := array(select distinct v.build_id from pending as p join reservation as v on v.job_id = p.job_id where p.lacks = 'image');

    for v_build in
        select b.id, b.state, coalesce(b.error, 'its build context is no longer kept: reserve again') as error
          from build as b
         where b.id = any (v_wanted)
           and (b.state = 'failed' or b.state = 'queued' and not exists (select from build_context as c where c.build_id = b.id))
         order by b.id
    loop
        perform _fail_build_waiters(v_build.id, v_build.error, p_now);
    end loop;

    with dropped as (
        update build as b set state = 'queued', step = null, started_at = null, made_at = null
         where b.state = 'building' and b.id <> all (v_wanted)
        returning b.id, b.digest, b.attempt
    )
    insert into event (at, kind, actor, detail)
    select p_now, 'build_dropped', 'odcd', jsonb_build_object('build', d.id, 'digest', d.digest, 'attempt', d.attempt) from dropped as d order by d.id;

    with next as (
        select b.id from build as b
         where b.state = 'queued' and b.id = any (v_wanted) and exists (select from build_context as c where c.build_id = b.id)
         order by b.asked_at, b.id
         limit greatest(0, p_most - (select count(*) from build as o where o.state = 'building'))
    ), begun as (
        update build as b
           set state = 'building', attempt = b.attempt + 1, started_at = p_now, made_at = null, ended_at = null, step = null, log = ''
          from next as n where b.id = n.id
        returning b.id, b.digest, b.attempt
    )
    insert into event (at, kind, actor, detail)
    select p_now, 'build_started', 'odcd', jsonb_build_object('build', b.id, 'digest', b.digest, 'attempt', b.attempt) from begun as b order by b.id;

    delete from build_context as c
     where c.build_id <> all (v_wanted)
       and (c.at < p_now - interval '1 day' or exists (select from build as b where b.id = c.build_id and b.state in ('completed', 'failed')));
    perform _judge_needs('{}', p_now, array(select p.job_id from pending as p where p.lacks = 'image' order by p.job_id));
    return query
        select b.id, b.attempt, b.digest, b.target, b.dockerfile, b.asked_uid, b.made_at is not null, b.started_at
          from build as b where b.state = 'building' order by b.id;
end;
$$;
