-- odc.request_import: an operator asks for a list of gpu-dev's disks, or for their import. The leader answers it.
-- Arguments  p_owners   {"gpu-dev user": "odc user"}: those that differ
--            p_users    only these users of gpu-dev; null: all
--            p_tags     the names of gpu-dev's tags: {"user", "disk", "kind"}
--            p_applies  false: only list
-- Returns    the import as JSON text
-- Locks      disk_import
-- Raises     OD013 NotOwner, OD027 UnknownUser: a named owner is
create or replace function odc.request_import(
    p_actor jsonb, p_owners jsonb, p_users text[], p_tags jsonb, p_applies boolean, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_kept constant interval := '7 days';
    v_id   bigint;
begin
    perform _check_operator(p_actor, 'import disks');
    perform _disk_owner(p_actor, o.value) from jsonb_each_text(p_owners) as o order by o.key;
    delete from disk_import where asked_at < p_now - v_kept;
    insert into disk_import (uid, user_name, asked_at, applies, owners, users, tags, due_at)
    values ((p_actor ->> 'uid')::integer, p_actor ->> 'user', p_now, p_applies, p_owners, p_users, p_tags, p_now) returning id into v_id;
    perform _wake();
    return show_import(p_actor, v_id);
end;
$$;
