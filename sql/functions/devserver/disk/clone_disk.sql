-- odc.clone_disk: create a disk that starts from the newest snapshot of another, by an operator. Nothing is copied
-- before its first use.
-- Arguments  p_user      the owner of the original
--            p_new_user  the owner of the clone; null: the same user
-- Returns    the new disk as JSON text
-- Locks      the turn; disk
-- Raises     OD036 UnknownDisk, OD037 DiskDeleted, OD012 WrongState: no snapshot, OD028 InUse: the name is, OD010 BadRequest, OD013 NotOwner, OD027 UnknownUser
create or replace function odc.clone_disk(
    p_actor jsonb, p_user text, p_name text, p_new_user text, p_new_name text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_disk disk;
    v_uid  integer;
    v_from bigint;
    v_id   bigint;
begin
    perform _take_turn(p_now);
    perform _check_operator(p_actor, 'clone disks');
    v_disk := _find_disk(p_actor, p_user, p_name, p_now);
    v_uid := case when p_new_user is null then v_disk.uid else _disk_owner(p_actor, p_new_user) end;
    perform _check_disk_name(v_uid, p_new_name);
    select s.id into v_from from disk_snapshot as s
     where s.state = 'completed' and (s.disk_id = v_disk.id or s.id = v_disk.origin) order by s.disk_id = v_disk.id desc, s.id desc limit 1;
    if v_from is null then
        raise exception using errcode = 'OD012',
            message = format('disk "%s" has no completed snapshot to clone', p_name),
            hint = 'A snapshot is created when a reservation that uses the disk ends.';
    end if;
    insert into disk (uid, user_name, name, size_gib, origin, made_at)
    values (v_uid, coalesce(p_new_user, v_disk.user_name), p_new_name, v_disk.size_gib, v_from, p_now) returning id into v_id;
    insert into event (at, kind, actor, detail)
    values (p_now, 'disk_cloned', p_actor ->> 'user', jsonb_build_object(
                'name', p_name, 'user', v_disk.user_name, 'new_name', p_new_name, 'new_user', coalesce(p_new_user, v_disk.user_name)));
    return _render_disks(array[v_id], p_now)::json -> 0;
end;
$$;
