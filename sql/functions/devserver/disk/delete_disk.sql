-- odc.delete_disk: delete a disk softly: its snapshots are kept for another 30 days.
-- Returns    the disk as JSON text
-- Locks      the turn; disk, disk_snapshot
-- Raises     OD036 UnknownDisk, OD037 DiskDeleted, OD028 InUse, OD013 NotOwner
create or replace function odc.delete_disk(p_actor jsonb, p_user text, p_name text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_disk disk;
begin
    perform _take_turn(p_now);
    v_disk := _find_disk(p_actor, p_user, p_name, p_now);
    perform _refuse_used_disk(v_disk, 'deleted');
    update disk set deleted_at = p_now, purge_at = p_now + interval '30 days' where id = v_disk.id;
    update disk_snapshot set labelled = false, due_at = p_now where disk_id = v_disk.id and state = 'completed';
    insert into event (at, kind, actor, detail)
    values (p_now, 'disk_deleted', p_actor ->> 'user', jsonb_build_object('name', p_name, 'user', v_disk.user_name));
    perform _wake();
    return _render_disks(array[v_disk.id], p_now)::json -> 0;
end;
$$;
