-- odc.show_disk: one disk.
-- Returns    a JSON object as text
-- Raises     OD036 UnknownDisk, OD037 DiskDeleted, OD013 NotOwner
create or replace function odc.show_disk(p_actor jsonb, p_user text, p_name text, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    return _render_disks(array[(_find_disk(p_actor, p_user, p_name, p_now)).id], p_now)::json -> 0;
end;
$$;
