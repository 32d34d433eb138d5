-- odc._live_tasks: the number of pending and running jobs and array tasks of some accounts, user, QOS or partition.
-- Arguments  null: any
create or replace function odc._live_tasks(p_account_ids integer[], p_uid integer, p_qos_id integer, p_partition_id integer)
returns bigint
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_waiting bigint;
begin
    if p_uid is not null then
        -- Separate, so that the index on the user is used.
        select coalesce(sum(case when p.tasks is null then 1 else _task_count(p.tasks) end), 0) into v_waiting
          from pending as p
         where p.uid = p_uid and (p_account_ids is null or p.account_id = any (p_account_ids))
           and (p_qos_id is null or p.qos_id = p_qos_id)
           and (p_partition_id is null or exists (select from shape as s where s.id = p.shape_id and p_partition_id = any (s.partition_ids)));
    else
        select coalesce(sum(case when p.tasks is null then 1 else _task_count(p.tasks) end), 0) into v_waiting
          from pending as p
         where (p_account_ids is null or p.account_id = any (p_account_ids))
           and (p_qos_id is null or p.qos_id = p_qos_id)
           and (p_partition_id is null or exists (select from shape as s where s.id = p.shape_id and p_partition_id = any (s.partition_ids)));
    end if;
    return v_waiting + (
        select count(*)
          from running as r
         where (p_uid is null or r.uid = p_uid) and (p_account_ids is null or r.account_id = any (p_account_ids))
           and (p_qos_id is null or r.qos_id = p_qos_id) and (p_partition_id is null or r.partition_id = p_partition_id));
end;
$$;
