-- odc.show_import: an import of gpu-dev's disks, and its result once the leader has listed the cloud.
-- Returns    a JSON object as text
-- Raises     OD013 NotOwner, OD036 UnknownDisk: there is no such import
create or replace function odc.show_import(p_actor jsonb, p_id bigint)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_import disk_import;
begin
    perform _check_operator(p_actor, 'import disks');
    select * into v_import from disk_import as i where i.id = p_id;
    if v_import.id is null then
        raise exception using errcode = 'OD036',
            message = format('there is no import %s', p_id), hint = 'Imports are kept for 7 days; `odcctl disk import` starts another one.';
    end if;
    return json_build_object(
        'id', v_import.id, 'state', v_import.state, 'apply', v_import.applies, 'user', v_import.user_name, 'asked_at', _iso(v_import.asked_at),
        'trouble', v_import.trouble, 'disks', coalesce(v_import.disks, '[]'))::text;
end;
$$;
