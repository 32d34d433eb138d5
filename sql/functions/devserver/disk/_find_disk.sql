-- odc._find_disk: a user's disk by name, if the actor may act on it.
-- Arguments  p_user  the owner; null: the actor
-- Returns    a disk that is not deleted
-- Raises     OD036 UnknownDisk, OD037 DiskDeleted, OD013 NotOwner
create or replace function odc._find_disk(p_actor jsonb, p_user text, p_name text, p_now timestamptz)
returns odc.disk
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_uid  constant integer := _disk_owner(p_actor, p_user);
    v_disk disk;
    v_gone timestamptz;
begin
    select * into v_disk from disk as d where d.uid = v_uid and d.name = p_name and d.deleted_at is null;
    if v_disk.id is null then
        select d.purge_at into v_gone from disk as d where d.uid = v_uid and d.name = p_name order by d.id desc limit 1;
        if v_gone is not null then
            raise exception using errcode = 'OD037',
                message = format('disk "%s" was deleted; its snapshots %s', p_name,
                                 case when v_gone > p_now then format('are kept until %s', _iso(v_gone)) else 'are gone' end),
                hint = '`odcctl disk create` creates a new disk with that name.';
        end if;
        raise exception using errcode = 'OD036',
            message = format('%s no disk "%s"', case when p_user is null then 'you have' else format('user %s has', p_user) end, p_name),
            hint = format('`odcctl disk list` shows the disks; `odcctl disk create %s` creates this one.', p_name);
    end if;
    return v_disk;
end;
$$;
