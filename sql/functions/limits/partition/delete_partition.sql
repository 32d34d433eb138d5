-- odc.delete_partition: delete a partition and its limits, by an operator. Jobs that ended there keep its name.
-- Arguments  p_actor  {user, uid, operator}
-- Returns    the partition before its deletion, as JSON text
-- Locks      the turn; advisory 0x6F6465, against submits (_hold_partitions); partition; node_free
-- Raises     OD013 NotOwner, OD001 UnknownPartition, OD012 WrongState: the default one, OD028 InUse: jobs, bookings or
--            memberships name it
create or replace function odc.delete_partition(p_actor jsonb, p_name text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_partition partition;
    v_old       jsonb;
    v_uses      text;
begin
    perform _check_operator(p_actor, 'delete partitions');
    perform _take_turn(p_now);
    perform pg_advisory_xact_lock(7300197);
    select * into v_partition from partition where name = p_name for update;
    if not found then
        raise exception using errcode = 'OD001',
            message = format('partition "%s" does not exist', p_name),
            hint = format('Partitions: %s.', (select string_agg(p.name, ', ' order by p.name) from partition as p));
    elsif v_partition.is_default then
        raise exception using errcode = 'OD012',
            message = format('partition "%s" is the default one: jobs that name no partition use it', p_name),
            hint = 'Make another partition the default first: odcctl partition edit NAME --default.';
    end if;
    select concat_ws('; ',
               (select case when count(*) = 1 then format('job %s is pending or running there', min(w.job_id))
                            when count(*) > 1 then format('%s jobs are pending or running there, the first is %s', count(*), min(w.job_id)) end
                  from (select job_id from pending union all select job_id from running) as w
                  join job as j on j.id = w.job_id
                 where v_partition.id = any (j.partition_ids)),
               (select 'its bookings: ' || string_agg(b.name, ', ' order by b.name) from booking as b
                 where b.partition_id = v_partition.id and b.state in ('PLANNED', 'ACTIVE')),
               (select 'account memberships for it alone: ' || string_agg(format('%s in %s', m.user_name, a.name), ', '
                                                                       order by m.user_name, a.name)
                  from association as m join account as a on a.id = m.account_id
                 where m.partition_id = v_partition.id)) into v_uses;
    if v_uses <> '' then
        raise exception using errcode = 'OD028',
            message = format('partition "%s" is in use: %s', p_name, v_uses),
            hint = format('End or move these first. To accept no new jobs: odcctl partition edit %s --state DRAIN.', p_name);
    end if;
    v_old := list_partitions(array[p_name])::jsonb -> 0;
    delete from resource_limit as r where r.scope = 'partition' and r.scope_id = v_partition.id;
    delete from partition where id = v_partition.id;
    perform _regroup_nodes();
    insert into event (at, kind, actor, detail)
    values (p_now, 'partition_deleted', p_actor ->> 'user', jsonb_build_object('name', p_name, 'old', v_old));
    perform _wake();
    return v_old::text;
end;
$$;
