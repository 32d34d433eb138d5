-- odc._import_disk: write a disk of gpu-dev as one of odc, whose snapshot is still to be tagged or to be made.
-- Arguments  p_one    as _judge_import returned it, to be imported
--            p_found  as odcd.disks.gpu_dev returned it
--            p_uid    of the owner
--            p_by     the operator
-- Locks      the caller holds the turn; disk, disk_snapshot
create or replace function odc._import_disk(p_one jsonb, p_found jsonb, p_uid integer, p_by text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_min_gib constant integer := 10;
    v_adopted constant boolean := p_found ->> 'kind' = 'snapshot';
    v_gib     constant integer := (p_found ->> 'size_gib')::integer;
    v_id      bigint;
begin
    insert into disk (uid, user_name, name, size_gib, made_at, used_at, imported_user, imported_name)
    values (p_uid, p_one ->> 'user', p_one ->> 'name', greatest(v_gib, v_min_gib), p_now,
            (p_found ->> 'last_used_at')::timestamptz, p_one ->> 'gpu_dev_user', p_one ->> 'gpu_dev_disk') returning id into v_id;
    insert into disk_snapshot (disk_id, source, adopted, kind, size_gib, cloud_id, asked_at, contents, due_at)
    values (v_id, p_found ->> 'source', v_adopted, 'migration', v_gib, case when v_adopted then p_found ->> 'cloud_id' end, p_now,
            p_found ->> 'contents', p_now);
    insert into event (at, kind, actor, detail)
    values (p_now, 'disk_imported', p_by, jsonb_build_object(
                'name', p_one ->> 'name', 'user', p_one ->> 'user', 'gpu_dev_user', p_one ->> 'gpu_dev_user',
                'gpu_dev_disk', p_one ->> 'gpu_dev_disk', 'from', p_found ->> 'cloud_id'));
end;
$$;
