-- odc._set_partition_depth: set how many protected jobs a partition plans, which is a setting of its policy.
-- Raises     OD012 WrongState: other partitions use that policy, too; OD010 BadRequest
create or replace function odc._set_partition_depth(p_actor jsonb, p_partition partition, p_changes jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_others text := (select string_agg(p.name, ', ' order by p.name) from partition as p
                       where p.policy = p_partition.policy and p.id <> p_partition.id);
begin
    if v_others is not null then
        raise exception using errcode = 'OD012',
            message = format('the plan depth belongs to the policy, and policy "%s" is also used by partition %s', p_partition.policy, v_others),
            hint = format('Give the partition its own policy: odcctl policy create NAME --like %s --plan-depth %s, then odcctl partition '
                          'edit %s --policy NAME.', p_partition.policy, p_changes ->> 'plan_depth', p_partition.name);
    end if;
    perform edit_policy(p_actor, p_partition.policy, jsonb_build_object('plan_depth', p_changes -> 'plan_depth'), p_now);
end;
$$;
