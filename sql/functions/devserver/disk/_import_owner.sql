-- odc._import_owner: the uid of a user who gets disks; null: unknown.
create or replace function odc._import_owner(p_user text)
returns integer
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    return _disk_owner('{"operator": true}', p_user);
exception when sqlstate 'OD027' then
    return null;
end;
$$;
