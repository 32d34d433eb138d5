-- odc.list_disks: the disks of a user, including deleted ones whose snapshots are still kept.
-- Arguments  p_user  the owner; null: the actor; all: of all users, for operators
-- Returns    a JSON array as text
-- Raises     OD013 NotOwner, OD027 UnknownUser
create or replace function odc.list_disks(p_actor jsonb, p_user text, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_uid integer;
begin
    if p_user = 'all' then
        perform _check_operator(p_actor, 'list the disks of all users');
    else
        v_uid := _disk_owner(p_actor, p_user);
    end if;
    return _render_disks(array(
        select d.id from disk as d where (v_uid is null or d.uid = v_uid) and (d.purge_at is null or d.purge_at > p_now)), p_now);
end;
$$;
