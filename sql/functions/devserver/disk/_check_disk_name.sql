-- odc._check_disk_name: refuse a name that is invalid for a disk, or that another disk of the user has.
-- Raises     OD010 BadRequest, OD028 InUse
create or replace function odc._check_disk_name(p_uid integer, p_name text)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if coalesce(p_name, '') !~ '^[A-Za-z0-9_-]{1,50}$' or p_name = 'none' then
        raise exception using errcode = 'OD010',
            message = format('"%s" is not a valid disk name', left(p_name, 60)),
            hint = case when p_name = 'none' then '"none" means no disk.'
                        else 'A name has 1 to 50 letters, digits, - and _.' end;
    elsif exists (select from disk as d where d.uid = p_uid and d.name = p_name and d.deleted_at is null) then
        raise exception using errcode = 'OD028',
            message = format('disk "%s" already exists', p_name), hint = 'Choose another name; `odcctl disk list` shows the disks.';
    end if;
end;
$$;
