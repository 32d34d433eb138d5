-- odc.edit_booking: change a current or future booking, by an operator. It keeps its nodes as far as the change allows.
-- Arguments  p_actor  {user, uid, operator}
--            p_ask    as _read_booking; only the changes. The kind cannot change
-- Returns    the booking as JSON text
-- Locks      the turn; booking; pending
-- Raises     OD013 NotOwner, OD012 WrongState, OD018 UnknownBooking, and what create_booking raises
create or replace function odc.edit_booking(p_actor jsonb, p_name text, p_ask jsonb, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_old   booking;
    v_mine  integer[];
    v_nodes integer[];
    b       booking;
begin
    perform _check_operator(p_actor, 'change bookings');
    perform _take_turn(p_now);
    v_old := _live_booking(p_name);
    if p_ask - 'ignore_running' = '{}' then
        raise exception using errcode = 'OD010',
            message = 'the request changes nothing', hint = 'Give at least one field to change.';
    end if;
    b := _read_booking(v_old, p_ask - 'kind', p_now);
    v_mine := array(select node_id from booking_node where booking_id = b.id order by node_id);
    v_nodes := v_mine;
    if (b.starts_at, b.duration_s, b.repeats, b.repeats_until, b.zone, b.node_list, b.gpu_type, b.partition_id, b.all_nodes, b.node_count)
       is distinct from (v_old.starts_at, v_old.duration_s, v_old.repeats, v_old.repeats_until, v_old.zone, v_old.node_list,
                         v_old.gpu_type, v_old.partition_id, v_old.all_nodes, v_old.node_count) then
        v_nodes := _choose_nodes(b, v_mine, p_now);
    end if;
    update booking
       set name = b.name, starts_at = b.starts_at, duration_s = b.duration_s, repeats = b.repeats,
           repeats_until = b.repeats_until, zone = b.zone, node_list = b.node_list, gpu_type = b.gpu_type,
           partition_id = b.partition_id, all_nodes = b.all_nodes, node_count = b.node_count,
           user_names = b.user_names, uids = b.uids, account_ids = b.account_ids,
           ignore_running = b.ignore_running, comment = b.comment
     where id = b.id;
    delete from booking_node where booking_id = b.id and node_id <> all (v_nodes);
    insert into booking_node (booking_id, node_id)
    select b.id, n from unnest(v_nodes) as n where n <> all (v_mine);
    insert into event (at, kind, actor, detail)
    values (p_now, 'booking_edited', p_actor ->> 'user', _booking_facts(b));
    perform _turn_booking(b.id, p_now);
    perform _mend_booking(b.id, p_now);
    perform _wake();
    return _render_bookings(array[b.id], p_now) -> 0;
end;
$$;
