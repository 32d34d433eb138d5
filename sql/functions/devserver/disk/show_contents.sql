-- odc.show_contents: the contents of the newest snapshot of a disk, as listed when it was made.
-- Returns    JSON {name, snapshot_id, at, used_bytes, contents: text, null: not listed}; snapshot_id null: there is
--            none yet
-- Raises     OD036 UnknownDisk, OD037 DiskDeleted, OD013 NotOwner
create or replace function odc.show_contents(p_actor jsonb, p_user text, p_name text, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_disk disk;
begin
    v_disk := _find_disk(p_actor, p_user, p_name, p_now);
    return (select json_build_object('name', v_disk.name, 'snapshot_id', s.cloud_id, 'at', _iso(s.asked_at),
                                     'used_bytes', s.used_bytes, 'contents', s.contents)::text
              from (select 1) as one
              left join lateral (
                   select * from disk_snapshot as l where l.state = 'completed' and (l.disk_id = v_disk.id or l.id = v_disk.origin)
                    order by l.disk_id = v_disk.id desc, l.id desc limit 1) as s on true);
end;
$$;
