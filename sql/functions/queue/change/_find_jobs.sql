-- odc._find_jobs: the jobs that a command applies to, and the place of each. It is one statement, because the answer about
-- a request depends on whether anything was found for it.
-- Arguments  p_actor    {user, uid, operator}
--            p_filters  {ids: [{job_id, tasks, alone}], job_ids: [id]} names jobs, arrays and tasks, and other filters
--                       restrict them further. alone: of an array only the pending range, without tasks that have
--                       separate rows. Without ids, the filters user, name[], partition[], account[], qos[], state[]
--                       select from the live jobs of the actor (of an operator: of all); all: true selects all of them
--            p_place    pending or running: the place that the command applies to; null: both
-- Returns    one row per job, even if it is named several times; tasks: the selected part of an array's pending range,
--            null: all of it; place: pending, running, ended; or null with a refusal (OD006 unknown, OD013 not the
--            owner). For an array or a filter, only jobs in p_place, if there are any; ended tasks are left out
--            unless all named tasks have ended
-- PostgreSQL may plan it for a queue that was empty when it last counted. enable_seqscan, `offset 0` and `not in` leave no
-- plan that compares each job with all others.
-- Raises     OD010 BadRequest: the request selects no jobs; OD001, OD002, OD004: a filter names something that does not exist
create or replace function odc._find_jobs(p_actor jsonb, p_filters jsonb, p_place text default null)
returns table (
    job_id bigint, tasks int4multirange, place text, uid integer, array_task_id integer, array_job_id bigint,
    code text, message text, hint text)
language plpgsql stable set search_path = odc, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
declare
    v_uid        integer := (p_actor ->> 'uid')::integer;
    v_operator   boolean := coalesce((p_actor ->> 'operator')::boolean, false);
    v_named      boolean := p_filters ? 'ids' or p_filters ? 'job_ids';
    v_filtered   boolean := p_filters ?| '{user,name,partition,account,qos,state}';
    v_users      text[] := _known_as(_words(p_filters -> 'user'));
    v_names      text[] := _words(p_filters -> 'name');
    v_states     text[] := _words(p_filters -> 'state');
    v_accounts   integer[] := (select array_agg(id) from account where name = any (_words(p_filters -> 'account')));
    v_qos        integer[] := (select array_agg(id) from qos where name = any (_words(p_filters -> 'qos')));
    v_partitions integer[] := (select array_agg(id) from partition where name = any (_words(p_filters -> 'partition')));
begin
    if not v_named and not v_filtered and not coalesce((p_filters -> 'all')::boolean, false) then
        raise exception using errcode = 'OD010', message = 'the request selects no jobs',
            hint = 'Give ids, a filter, or all: true.';
    end if;
    perform _check_names(p_filters);
    return query
    with asked as materialized (
        select row_number() over () as ord, a.job_id, a.tasks, a.alone
          from (select s.job_id, s.tasks::int4multirange as tasks, coalesce(s.alone, false) as alone
                  from jsonb_to_recordset(coalesce(p_filters -> 'ids', '[]')) as s (job_id bigint, tasks text, alone boolean)
                 union all
                select i::bigint, null, false from jsonb_array_elements_text(coalesce(p_filters -> 'job_ids', '[]')) as i) as a
    ), candidate as (
        -- A job, or an array with all its live tasks.
        select a.ord, p.job_id, null::int4multirange as tasks
          from asked as a
         cross join lateral (select p.job_id from pending as p where p.job_id = a.job_id offset 0) as p
         where a.tasks is null
         union all
        select a.ord, r.job_id, null
          from asked as a
         cross join lateral (select r.job_id from running as r where r.job_id = a.job_id offset 0) as r
         where a.tasks is null
         union all
        select a.ord, p.job_id, null
          from asked as a
         cross join lateral (select p.job_id from pending as p
                              where p.array_job_id = a.job_id and p.job_id <> a.job_id offset 0) as p
         where a.tasks is null and not a.alone
         union all
        select a.ord, r.job_id, null
          from asked as a
         cross join lateral (select r.job_id from running as r
                              where r.array_job_id = a.job_id and r.job_id <> a.job_id offset 0) as r
         where a.tasks is null and not a.alone
         union all
        select a.ord, j.id, null
          from asked as a cross join lateral (select j.id, j.state from job as j where j.id = a.job_id offset 0) as j
         where a.tasks is null and j.state is not null
         union all
        -- Tasks of an array: those in its pending range, those with separate rows, those cancelled together.
        select a.ord, p.job_id, p.tasks * a.tasks
          from asked as a
         cross join lateral (select p.job_id, p.tasks from pending as p where p.job_id = a.job_id offset 0) as p
         where p.tasks && a.tasks
         union all
        select a.ord, j.id, null
          from asked as a
          join job as j on j.array_job_id = a.job_id
                       and j.array_task_id >= lower(a.tasks) and j.array_task_id < upper(a.tasks)
                       and a.tasks @> j.array_task_id
         union all
        -- The text of a row is read once, however many of its tasks are named: it can have 10,000 ranges.
        select u.ord, g.id, null
          from (select a.job_id, array_agg(a.ord) as ords, array_agg(a.tasks) as parts
                  from asked as a where a.tasks is not null group by a.job_id) as t
         cross join lateral (select j.id, _tasks_of(j.array_tasks) as tasks
                               from job as j
                              where j.array_job_id = t.job_id and j.array_task_id is null and j.array_tasks is not null
                             offset 0) as g
         cross join lateral unnest(t.ords, t.parts) as u (ord, tasks)
         where g.tasks && u.tasks
         union all
        select 1, p.job_id, null from pending as p where not v_named and (v_operator or p.uid = v_uid)
         union all
        select 1, r.job_id, null from running as r where not v_named and (v_operator or r.uid = v_uid)
    ), found as (
        select c.ord, j.id, j.uid, j.user_name, j.array_task_id, j.array_job_id,
               case when not p.tasks <@ c.tasks then c.tasks end as tasks,
               case when j.state is not null then 'ended' when r.job_id is not null then 'running' else 'pending' end
                   as place
          from candidate as c
         cross join lateral (select j.* from job as j where j.id = c.job_id offset 0) as j
          left join lateral (select p.tasks from pending as p where p.job_id = c.job_id offset 0) as p on true
          left join lateral (select r.job_id, r.state, r.partition_id from running as r
                              where r.job_id = c.job_id offset 0) as r on true
         where not v_filtered
            or (v_users is null or j.user_name in (select unnest(v_users)))
           and (v_names is null or j.name in (select unnest(v_names)))
           and (v_states is null or coalesce(j.state, r.state, 'PENDING')::text = any (v_states))
           and (not p_filters ? 'account' or j.account_id = any (v_accounts))
           and (not p_filters ? 'qos' or j.qos_id = any (v_qos))
           and (not p_filters ? 'partition'
                or case when coalesce(r.partition_id, j.partition_id) is null then j.partition_ids && v_partitions
                        else coalesce(r.partition_id, j.partition_id) = any (v_partitions) end)
    ), ranked as (
        select f.*, case f.place when p_place then 0 when 'ended' then 2 else 1 end as rank from found as f
    ), meant as (
        select r.*, min(r.rank) over (partition by r.ord) as best from ranked as r
    ), merged as (
        select m.id, m.uid, m.user_name, m.array_task_id, m.array_job_id, m.place, min(m.ord) as ord,
               case when bool_and(m.tasks is not null) then range_agg(m.tasks) end as tasks
          from meant as m
         where m.rank = m.best
         group by m.id, m.uid, m.user_name, m.array_task_id, m.array_job_id, m.place
    )
    select m.id, m.tasks, case when v_operator or m.uid = v_uid then m.place end, m.uid, m.array_task_id,
           m.array_job_id,
           case when not v_operator and m.uid <> v_uid then 'OD013' end,
           case when not v_operator and m.uid <> v_uid then format('job %s belongs to %s', m.id, m.user_name) end,
           case when not v_operator and m.uid <> v_uid then 'Only its owner and operators may do that.' end
      from merged as m
     union all
    select a.job_id, null, null, null, null, null, 'OD006',
           case when a.tasks is null then format('job %s does not exist', a.job_id)
                when not exists (select from job as j where j.id = a.job_id) then format('array %s does not exist', a.job_id)
                else format('array %s has no task %s', a.job_id, _task_text(a.tasks, null)) end,
           _unknown_hint(a.job_id)
      from asked as a
     where a.ord not in (select c.ord from candidate as c)
     order by 1;
end;
$$;
