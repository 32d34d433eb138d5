-- odc.create_disk: create a disk. The cloud is not asked for anything before its first use.
-- Arguments  p_key, p_digest  idempotency key, and a digest that identifies its request; null: none
-- Returns    the disk as JSON text
-- Locks      the turn; idempotency by (uid, key); disk
-- Raises     OD010 BadRequest, OD014 KeyReused, OD028 InUse: it already exists
create or replace function odc.create_disk(
    p_actor jsonb, p_name text, p_size_gib integer, p_now timestamptz, p_key text default null, p_digest text default null)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_uid constant integer := (p_actor ->> 'uid')::integer;
    v_id  bigint;
begin
    perform _take_turn(p_now);
    if _repeats_request(p_actor, p_key, p_digest, p_now) then
        return show_disk(p_actor, null, p_name, p_now);
    end if;
    perform _check_disk_name(v_uid, p_name);
    if coalesce(p_size_gib, 0) not between 10 and 16384 then
        raise exception using errcode = 'OD010',
            message = format('a disk cannot have %s GiB', p_size_gib), hint = 'A disk has 10 to 16384 GiB.';
    end if;
    insert into disk (uid, user_name, name, size_gib, made_at)
    values (v_uid, p_actor ->> 'user', p_name, p_size_gib, p_now) returning id into v_id;
    insert into event (at, kind, actor, detail)
    values (p_now, 'disk_created', p_actor ->> 'user', jsonb_build_object('name', p_name, 'size_gib', p_size_gib));
    return _render_disks(array[v_id], p_now)::json -> 0;
end;
$$;
