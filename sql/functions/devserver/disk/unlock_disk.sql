-- odc.unlock_disk: clear a disk's trouble after an operator has checked it. It continues from its newest completed
-- snapshot.
-- Returns    the disk as JSON text
-- Locks      the turn; disk
-- Raises     OD036 UnknownDisk, OD037 DiskDeleted, OD028 InUse: a job has it, or its data is being saved, OD013 NotOwner
create or replace function odc.unlock_disk(p_actor jsonb, p_user text, p_name text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_disk disk;
begin
    perform _take_turn(p_now);
    perform _check_operator(p_actor, 'unlock disks');
    v_disk := _find_disk(p_actor, p_user, p_name, p_now);
    if exists (select from disk_volume as v where v.disk_id = v_disk.id and v.state not in ('deleting', 'deleted', 'lost')) then
        raise exception using errcode = 'OD028',
            message = format('disk "%s" is in use by reservation %s, or is still being saved after it', p_name, v_disk.holder),
            hint = 'The disk is free once its snapshot has begun; `odcctl disk list` shows the progress.';
    end if;
    update disk set holder = null, trouble = null, trouble_at = null where id = v_disk.id;
    insert into event (at, kind, actor, detail)
    values (p_now, 'disk_unlocked', p_actor ->> 'user', jsonb_build_object(
                'name', p_name, 'user', v_disk.user_name, 'trouble', v_disk.trouble, 'holder', v_disk.holder));
    perform _judge_needs(array[v_disk.id], p_now);
    perform _wake();
    return _render_disks(array[v_disk.id], p_now)::json -> 0;
end;
$$;
