-- odc._check_submitted: refuse a change that brings a pending job under a limit on submitted jobs that is reached. Called
-- after the change. Limits that applied to the job before do not count again, even if they are exceeded.
-- Arguments  p_was  the job as it was before
-- Locks      none: _lock_submitted has locked the limits
-- Raises     OD009 LimitExceeded
create or replace function odc._check_submitted(p_was job, p_account_id integer, p_qos_id integer, p_partition_ids integer[])
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_partition_ids constant integer[] := (select s.partition_ids from shape as s where s.id = p_was.shape_id);
    v_tasks         bigint;
    v_live          bigint;
    l               record;
    h               record;
begin
    if (p_was.account_id, p_was.qos_id, v_partition_ids) = (p_account_id, p_qos_id, p_partition_ids)
       or not exists (select from resource_limit where what = 'submitted') then
        return;
    end if;
    for l in
        with applied as (
            select m.*
              from _limits_of(array[p_was.uid, p_was.uid], array[p_was.account_id, p_account_id], array[p_was.qos_id, p_qos_id],
                              array[v_partition_ids::text, p_partition_ids::text]) as m
             where m.what = 'submitted'
        )
        select n.*
          from applied as n
         where n.ord = 2
           and not exists (select from applied as o
                            where o.ord = 1 and (o.scope, o.scope_id, o.per, o.b_account, o.b_uid)
                                                = (n.scope, n.scope_id, n.per, n.b_account, n.b_uid))
         order by n.scope, n.scope_id, n.per, n.b_account, n.b_uid
    loop
        select * into h from _limit_holder(l.scope, l.scope_id, l.per, l.b_account, l.b_uid);
        v_live := _live_tasks(h.account_ids, h.uid, h.qos_id, h.partition_id);
        if v_live > l.value then
            select case when p.tasks is null then 1 else _task_count(p.tasks) end into v_tasks from pending as p where p.job_id = p_was.id;
            raise exception using errcode = 'OD009',
                message = format('%4$s may have %3$s, and %1$s more would make %2$s (%5$s)', v_tasks, v_live,
                                 _limit_amount('submitted', l.value), h.holder, _limit_reason(l.scope, l.per, 'submitted')),
                hint = 'Wait until some of them end, or cancel some.';
        end if;
    end loop;
end;
$$;
