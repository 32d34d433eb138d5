-- odc._find_jobs: the jobs that a command is about, and where each is.
-- Arguments  p_actor    {user, uid, operator}
--            p_filters  {ids: [{job_id, tasks}], job_ids: [id]} names jobs, arrays and tasks, and filters narrow
--                       them down; without, user, name[], partition[], account[], qos[], state[] choose among the
--                       live jobs of the actor (of an operator: of all), and all: true takes every one of them
-- Returns    a row per job; tasks: the part of an array's waiting range that is meant, null for all of it;
--            place: pending, running, ended; or a refusal (OD006 unknown, OD013 not the owner), place null
create or replace function odc._find_jobs(p_actor jsonb, p_filters jsonb)
returns table (
    job_id bigint, tasks int4multirange, place text, uid integer, array_task_id integer, array_job_id bigint,
    code text, message text, hint text)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_uid      integer := (p_actor ->> 'uid')::integer;
    v_operator boolean := coalesce((p_actor ->> 'operator')::boolean, false);
begin
    if p_filters ? 'ids' or p_filters ? 'job_ids' then
        return query
        with asked as (
            select a.job_id, a.tasks::int4multirange as tasks, row_number() over () as ord
              from jsonb_to_recordset(
                       coalesce(p_filters -> 'ids', '[]')
                       || coalesce((select jsonb_agg(jsonb_build_object('job_id', i))
                                      from jsonb_array_elements(p_filters -> 'job_ids') as i), '[]'))
                   as a (job_id bigint, tasks text)
        ), row as (
            select a.ord, j.id, j.uid, j.state, j.array_task_id, j.array_job_id, j.array_tasks, a.tasks
              from asked as a join job as j on j.id = a.job_id
             union all
            select a.ord, j.id, j.uid, j.state, j.array_task_id, j.array_job_id, j.array_tasks, a.tasks
              from asked as a join job as j on j.array_job_id = a.job_id and j.id <> a.job_id
        ), found as (
            select distinct on (r.ord, r.id) r.ord, r.id, r.uid, r.array_task_id, r.array_job_id,
                   case when r.tasks is not null and p.tasks is not null and not p.tasks <@ r.tasks
                        then p.tasks * r.tasks end as tasks,
                   case when r.state is not null then 'ended'
                        when w.job_id is not null then 'running'
                        when p.job_id is not null then 'pending' end as place
              from row as r
              left join pending as p on p.job_id = r.id
              left join running as w on w.job_id = r.id
             where (p.job_id is not null or w.job_id is not null or r.state is not null)
               and (r.tasks is null or r.array_task_id <@ r.tasks or p.tasks && r.tasks
                    or _tasks_of(r.array_tasks) && r.tasks)
        ), wanted as (
            -- Of an array the tasks that have ended are not meant, unless all have.
            select f.*, row_number() over (partition by f.ord order by f.place = 'ended', f.id) as n,
                   bool_or(f.place <> 'ended') over (partition by f.ord) as live
              from found as f
        )
        select coalesce(w.id, a.job_id), w.tasks,
               case when w.id is not null and (v_operator or w.uid = v_uid) then w.place end,
               w.uid, w.array_task_id, w.array_job_id,
               case when w.id is null then 'OD006' when not v_operator and w.uid <> v_uid then 'OD013' end,
               case when w.id is null and a.tasks is null then format('job %s does not exist', a.job_id)
                    when w.id is null then format('array %s has no task %s', a.job_id, _task_text(a.tasks, null))
                    when not v_operator and w.uid <> v_uid
                    then format('job %s belongs to %s', w.id, (select j.user_name from job as j where j.id = w.id)) end,
               case when w.id is null then '`odcctl queue -t all` lists the jobs there are.'
                    when not v_operator and w.uid <> v_uid then 'Only its owner and operators may do that.' end
          from asked as a
          left join wanted as w on w.ord = a.ord and (w.live and w.place <> 'ended' or not w.live and w.n = 1)
         where w.id is null or not p_filters ?| '{user,name,partition,account,qos,state}'
            or _passes_filters(w.id, p_filters)
         order by a.ord, w.id;
        return;
    end if;

    return query
    with live as (
        select p.job_id, 'pending' as place, p.uid, p.account_id, p.qos_id, null::integer as partition_id,
               'PENDING'::job_state as state
          from pending as p where v_operator or p.uid = v_uid
         union all
        select r.job_id, 'running', r.uid, r.account_id, r.qos_id, r.partition_id, r.state
          from running as r where v_operator or r.uid = v_uid
    )
    select l.job_id, null::int4multirange, l.place, l.uid, j.array_task_id, j.array_job_id,
           null::text, null::text, null::text
      from live as l
      join job as j on j.id = l.job_id
      join account as a on a.id = l.account_id
      join qos as q on q.id = l.qos_id
     where (not p_filters ? 'user' or j.user_name = any (_words(p_filters -> 'user')))
       and (not p_filters ? 'name' or j.name = any (_words(p_filters -> 'name')))
       and (not p_filters ? 'account' or a.name = any (_words(p_filters -> 'account')))
       and (not p_filters ? 'qos' or q.name = any (_words(p_filters -> 'qos')))
       and (not p_filters ? 'state' or l.state::text = any (_words(p_filters -> 'state')))
       and (not p_filters ? 'partition' or exists (
               select from partition as t
                where t.name = any (_words(p_filters -> 'partition'))
                  and t.id = any (case when l.partition_id is null then j.partition_ids else array[l.partition_id] end)))
     order by l.job_id;
end;
$$;
