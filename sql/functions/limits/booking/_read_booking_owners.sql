-- odc._read_booking_owners: the users and accounts that may use a booking, from a request.
-- Arguments  as _read_booking
-- Raises     OD002 UnknownAccount, OD010 BadRequest
create or replace function odc._read_booking_owners(p_booking booking, p_ask jsonb)
returns booking
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    b         booking := p_booking;
    v_unknown text;
begin
    b.user_names := coalesce(b.user_names, '{}');
    b.uids := coalesce(b.uids, '{}');
    b.account_ids := coalesce(b.account_ids, '{}');
    if p_ask ? 'users' then
        with asked as (
            select distinct on (u.name) u.name, coalesce(
                   u.uid,
                   (select s.uid from usage as s where s.user_name = u.name order by s.used_at desc limit 1),
                   (select s.uid from association as s where s.user_name = u.name order by s.id desc limit 1),
                   (select k.uid from api_key as k where k.user_name = u.name order by k.made_at desc limit 1)) as uid
              from jsonb_to_recordset(p_ask -> 'users') as u (name text, uid integer)
             order by u.name, u.uid
        )
        select coalesce(array_agg(a.name order by a.name) filter (where a.uid is not null), '{}'),
               coalesce(array_agg(a.uid order by a.name) filter (where a.uid is not null), '{}'),
               string_agg(format('"%s"', a.name), ', ' order by a.name) filter (where a.uid is null)
          into b.user_names, b.uids, v_unknown
          from asked as a;
        if v_unknown is not null then
            raise exception using errcode = 'OD010',
                message = format('user %s is unknown', v_unknown),
                hint = 'odc knows the users of the daemon''s machine, and users who have submitted jobs or have an API key.';
        end if;
    end if;
    if p_ask ? 'accounts' then
        select coalesce(array_agg(a.id order by a.id) filter (where a.id is not null), '{}'),
               string_agg(format('"%s"', w.name), ', ' order by w.name) filter (where a.id is null)
          into b.account_ids, v_unknown
          from (select distinct w.name from unnest(_words(p_ask -> 'accounts')) as w (name)) as w
          left join account as a on a.name = w.name and a.deleted_at is null;
        if v_unknown is not null then
            raise exception using errcode = 'OD002',
                message = format('account %s does not exist', v_unknown),
                hint = format('Accounts: %s.', (select string_agg(a.name, ', ' order by a.name) from account as a
                                                 where a.deleted_at is null));
        end if;
    end if;
    if b.kind = 'maintenance' and (b.uids <> '{}' or b.account_ids <> '{}') then
        raise exception using errcode = 'OD010',
            message = 'a maintenance booking has no owners, but owners were named',
            hint = 'Leave the users and accounts out, or make it a booking for use.';
    elsif b.kind = 'use' and b.uids = '{}' and b.account_ids = '{}' then
        raise exception using errcode = 'OD010',
            message = 'no one could use the booking: it names neither users nor accounts',
            hint = 'Name its owners (--users, --accounts), or make it a --maintenance booking.';
    end if;
    return b;
end;
$$;
