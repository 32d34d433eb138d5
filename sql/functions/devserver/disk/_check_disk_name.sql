-- odc._check_disk_name: refuse a name that is invalid for a disk, or that another disk of the user has.
-- Raises     OD010 BadRequest, OD028 InUse
create or replace function odc._check_disk_name(p_uid integer, p_name text)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if coalesce(p_name, '') !~ '^[A-Za-z0-9_-]{1,50}$' or p_name = 'none' then
        raise exception using errcode = 'OD010',
            message = format('"%s" cannot be the name of a disk', left(p_name, 60)),
            hint = case when p_name = 'none' then '"none" means: no disk.'
                        else 'A name has letters, digits, - and _, at most 50.' end;
    elsif exists (select from disk as d where d.uid = p_uid and d.name = p_name and d.deleted_at is null) then
        raise exception using errcode = 'OD028',
            message = format('there is a disk "%s" already', p_name), hint = '`odcctl disk list` shows those there are.';
    end if;
end;
$$;
