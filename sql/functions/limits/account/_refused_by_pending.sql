-- odc._refused_by_pending: the requests of a batch that exceed the limit on a user's pending jobs. A task counts as
-- a job. Each submission is added to a stored count. When that count reaches the limit, all pending jobs are counted
-- again, at most every 5 seconds, and otherwise every hour: a count reads every pending row of the user.
-- Arguments  parallel, one per job of the batch: request, user, name, the user's limit, tasks; user null if the job is
--            already refused, limit null if there is none
-- Returns    position: of the first job of each refused request, from 1
-- Locks      pending_bound by uid, to the end of the transaction: submissions of one user are serialised
create or replace function odc._refused_by_pending(
    p_requests integer[], p_uids integer[], p_users text[], p_limits bigint[], p_tasks integer[], p_now timestamptz)
returns table ("position" integer, code text, message text, hint text)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    a       record;
    v_bound pending_bound;
    v_uid   integer;
    v_taken bigint;                   -- by this user in this batch: not pending yet
begin
    for a in
        select j.uid, j.request, min(j.user_name) as user_name, min(j.most) as most, min(j.n)::integer as n, sum(j.tasks) as tasks
          from unnest(p_requests, p_uids, p_users, p_limits, p_tasks) with ordinality
               as j (request, uid, user_name, most, tasks, n)
         where j.uid is not null and j.most is not null
         group by j.uid, j.request
         order by j.uid, j.request
    loop
        if a.uid is distinct from v_uid then
            v_uid := a.uid;  v_taken := 0;
        end if;
        insert into pending_bound as b (uid, tasks, counted_at) values (a.uid, 0, '-infinity') on conflict (uid) do nothing;
        select * into v_bound from pending_bound as b where b.uid = a.uid for update;
        if v_bound.counted_at not between p_now - interval '1 hour' and p_now
           or v_bound.tasks + a.tasks > a.most and v_bound.counted_at <= p_now - interval '5 seconds' then
            select coalesce(sum(case when p.tasks is null then 1 else _task_count(p.tasks) end), 0) + v_taken
              into v_bound.tasks
              from pending as p
             where p.uid = a.uid;
            v_bound.counted_at := p_now;
        end if;
        if v_bound.tasks + a.tasks > a.most then
            return query select a.n, 'OD041',
                format('user %4$s may have %3$s pending jobs, and %1$s more would make %2$s',
                       a.tasks, v_bound.tasks + a.tasks, a.most, a.user_name),
                'Wait until some of them start, or cancel some. Operators set the limit with ODC_USER_PENDING.';
        else
            v_taken := v_taken + a.tasks;
            v_bound.tasks := v_bound.tasks + a.tasks;
        end if;
        update pending_bound as b set tasks = v_bound.tasks, counted_at = v_bound.counted_at where b.uid = a.uid;
    end loop;
end;
$$;
