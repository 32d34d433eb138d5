-- odc._resolve_booking: the booking that a job asks to run in.
-- Arguments  p_name          the requested name
--            p_who           {user, uid, operator}; operators may use any
--            p_account_id    of the job
--            p_at            the earliest time at which the job may begin
--            p_asked_s       its requested time limit; null: none requested
--            p_time_limit_s  its time limit otherwise
-- Returns    the booking's id, and the time limit: a limit that was not requested is cut to the window
-- Locks      booking for share: it neither ends nor disappears before the job is written
-- Raises     OD018 UnknownBooking; OD012 WrongState: it is over; OD013 NotOwner; OD009 LimitExceeded
create or replace function odc._resolve_booking(
    p_name text, p_uid integer, p_user text, p_operator boolean, p_account_id integer, p_at timestamptz,
    p_asked_s integer, p_time_limit_s integer,
    out booking_id integer, out time_limit_s integer)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    b         booking;
    v_actor   constant jsonb := jsonb_build_object('user', p_user, 'uid', p_uid, 'operator', p_operator);
    v_longest integer;
begin
    select * into b from booking where name = p_name and state in ('PLANNED', 'ACTIVE') for share;
    if not found then
        perform _refuse_no_booking(p_name, v_actor);
    end if;
    if not p_operator and not _owns_booking(b, p_uid, p_account_id) then
        raise exception using errcode = 'OD013',
            message = format('booking "%s" is not for user %s and account "%s"', b.name, p_user,
                             (select a.name from account as a where a.id = p_account_id)),
            hint = case when b.kind = 'maintenance' then 'It is for maintenance: leave --reservation out.'
                        when not _sees_booking(b, v_actor) then 'Leave --reservation out, or ask an operator to add you.'
                        -- One of its owners, in an account that is not.
                        else format('It is for %s. Leave --reservation out, or ask an operator to add you.', concat_ws(' and ',
                            'users ' || nullif(array_to_string(b.user_names, ', '), ''),
                            'accounts ' || (select string_agg(a.name, ', ' order by a.name)
                                              from account as a where a.id = any (b.account_ids)))) end;
    end if;
    v_longest := _longest_run_s(b, p_at);
    if v_longest is null then
        raise exception using errcode = 'OD012',
            message = format('booking "%s" ends before the job may start at %s', b.name, _iso(p_at)),
            hint = 'Let the job start earlier, or leave --reservation out.';
    elsif p_asked_s > v_longest then
        raise exception using errcode = 'OD009',
            message = format('time limit %1$s is longer than the %3$s of booking "%2$s"',
                             _duration(p_asked_s),
                             b.name, _duration(v_longest)),
            hint = format('Request at most %s, or leave --reservation out.', _duration(v_longest));
    end if;
    booking_id := b.id;
    time_limit_s := least(p_time_limit_s, v_longest);
end;
$$;
