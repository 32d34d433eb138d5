-- odc._change_account: the account and the QOS of a job after a change of either, or of its partitions: in other partitions
-- both may be closed to its user. Operators may move a job there all the same.
-- Arguments  p_job            the job as it is
--            p_partition_ids  its partitions after the change
-- Locks      usage: a new row
-- Raises     as _resolve_account and _resolve_qos
create or replace function odc._change_account(
    p_job odc.job, p_partition_ids integer[], p_operator boolean, p_changes jsonb, p_now timestamptz,
    out account_id integer, out qos_id integer)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_moves constant boolean := p_changes ? 'partitions' and not p_operator;
begin
    account_id := p_job.account_id;
    qos_id := p_job.qos_id;
    if p_changes ? 'account' or v_moves then
        account_id := _resolve_account(
            p_job.uid, p_job.user_name,
            coalesce(p_changes ->> 'account', (select a.name from account as a where a.id = p_job.account_id)),
            p_partition_ids);
    end if;
    if p_changes ?| '{account,qos}' or v_moves then
        qos_id := _resolve_qos(p_job.uid, p_job.user_name, account_id, p_partition_ids,
                               coalesce(p_changes ->> 'qos', (select q.name from qos as q where q.id = p_job.qos_id)));
        insert into usage (account_id, uid, qos_id, user_name, used_at)
        values (_change_account.account_id, p_job.uid, _change_account.qos_id, p_job.user_name, p_now)
        on conflict do nothing;
    end if;
end;
$$;
