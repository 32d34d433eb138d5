-- odc._read_booking: a booking as a request would create or change it. Everything is checked except whether its nodes are
-- available.
-- Arguments  p_booking  the current row; all null for a new booking
--            p_ask      the request: name, kind, starts_at, ends_at or duration_s, repeats, until, zone,
--                       node_list, gpu_type, partition, all_nodes, node_count, users [{name, uid}], accounts,
--                       ignore_running, comment. A uid that is null is looked up among the users of odc
-- Raises     OD001 UnknownPartition, OD002 UnknownAccount, OD005 UnknownGpuType, OD007 UnknownNode, OD010 BadRequest,
--            OD019 BookingConflict: the name is taken
create or replace function odc._read_booking(p_booking booking, p_ask jsonb, p_now timestamptz)
returns booking
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    b booking := p_booking;
begin
    b.name := coalesce(p_ask ->> 'name', b.name);
    if b.name is null or b.name !~ '^[A-Za-z0-9._-]{1,100}$' then
        raise exception using errcode = 'OD010',
            message = format('"%s" is not a valid booking name', b.name),
            hint = 'A name has 1 to 100 letters, digits, dots, dashes and underscores.';
    elsif exists (select from booking as o
                   where o.name = b.name and o.state in ('PLANNED', 'ACTIVE') and o.id is distinct from b.id) then
        raise exception using errcode = 'OD019',
            message = format('booking "%s" already exists', b.name),
            hint = format('Choose another name, or change that booking; `odcctl booking show %s` shows it.', b.name);
    end if;
    b.kind := coalesce(p_ask ->> 'kind', b.kind::text, 'use');
    b.comment := case when p_ask ? 'comment' then nullif(p_ask ->> 'comment', '') else b.comment end;
    b.ignore_running := coalesce((p_ask ->> 'ignore_running')::boolean, b.ignore_running, false);
    if b.ignore_running and b.kind = 'use' then
        raise exception using errcode = 'OD010',
            message = 'only a maintenance booking can ignore running jobs: the users of a booking need its nodes to be free',
            hint = 'Leave --force out, or make it --maintenance.';
    end if;
    b := _read_booking_times(b, p_ask, p_now);
    b := _read_booking_nodes(b, p_ask);
    return _read_booking_owners(b, p_ask);
end;
$$;
