-- odc.create_booking: set nodes aside for a future window, by an operator.
-- Arguments  p_actor        {user, uid, operator}
--            p_ask          as _read_booking
--            p_key, p_digest  idempotency key, and a digest that identifies its request; null: none
-- Returns    the booking as JSON text; if the key is known, the booking of the first request
-- Locks      the turn; idempotency by (uid, key)
-- Raises     OD013 NotOwner, OD014 KeyReused, OD008 NeverFits, OD019 BookingConflict, and what _read_booking raises
create or replace function odc.create_booking(
    p_actor jsonb, p_ask jsonb, p_key text, p_digest text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_kept  record;
    v_nodes integer[];
    b       booking;
begin
    perform _check_operator(p_actor, 'book nodes');
    perform _take_turn(p_now);
    select i.digest, i.job_ids[1]::integer as id into v_kept
      from idempotency as i where i.uid = (p_actor ->> 'uid')::integer and i.key = p_key;
    if found and v_kept.digest = p_digest then
        return _render_bookings(array[v_kept.id], p_now) -> 0;
    elsif found then
        raise exception using errcode = 'OD014',
            message = format('idempotency key "%s" was used for another request', p_key),
            hint = 'Send a new key with a new request; the same key repeats the first answer for 48 hours.';
    end if;
    b := _read_booking(null::booking, p_ask, p_now);
    v_nodes := _choose_nodes(b, '{}', p_now);
    insert into booking (
        name, kind, state_at, starts_at, duration_s, repeats, repeats_until, zone, node_list, gpu_type, partition_id, all_nodes,
        node_count, user_names, uids, account_ids, ignore_running, comment, created_by, created_at)
    values (b.name, b.kind, p_now, b.starts_at, b.duration_s, b.repeats, b.repeats_until, b.zone, b.node_list, b.gpu_type,
            b.partition_id, b.all_nodes, b.node_count, b.user_names, b.uids, b.account_ids, b.ignore_running, b.comment,
            p_actor ->> 'user', p_now)
    returning * into b;
    insert into booking_node (booking_id, node_id) select b.id, n from unnest(v_nodes) as n;
    insert into event (at, kind, actor, detail)
    values (p_now, 'booking_created', p_actor ->> 'user', _booking_facts(b));
    if p_key is not null then
        insert into idempotency (uid, key, digest, job_ids, made_at)
        values ((p_actor ->> 'uid')::integer, p_key, p_digest, array[b.id], p_now);
    end if;
    perform _turn_booking(b.id, p_now);
    perform _wake();
    return _render_bookings(array[b.id], p_now) -> 0;
end;
$$;
