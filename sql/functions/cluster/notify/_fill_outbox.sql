-- odc._fill_outbox: put notifications into the outbox, up to the limit per user and hour. The others are counted, and the
-- first one of an hour is an event. Mail is left out while the leader cannot send any.
-- It raises nothing: a job must end, whatever becomes of its notifications.
-- Arguments  p_rows  array of {uid, user, channel, address, kind, job_id, facts}; null: none
-- Locks      notify_use by uid, then notify_state beyond a limit; outbox, new rows. Take the turn first: a transaction may call
--            this several times, for users in any order
create or replace function odc._fill_outbox(p_rows jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_hour  constant timestamptz := date_trunc('hour', p_now);
    v_state notify_state;
    v_use   notify_use;
    v_user  record;
    v_uids  integer[] := '{}';
    v_rooms integer[] := '{}';      -- how many each may add
    v_room  integer;
    v_over  integer := 0;           -- how many are dropped
begin
    if p_rows is null then
        return;
    end if;
    select * into v_state from notify_state;
    for v_user in
        select r.uid, max(r."user") as name, count(*)::integer as n
          from jsonb_to_recordset(p_rows) as r (uid integer, "user" text, channel text)
         where r.channel = 'webhook' or v_state.mail
         group by r.uid order by r.uid
    loop
        insert into notify_use (uid, hour, taken, dropped) values (v_user.uid, v_hour, 0, 0) on conflict do nothing;
        select * into strict v_use from notify_use as u where u.uid = v_user.uid for update;
        if v_use.hour <> v_hour then
            v_use.taken := 0;  v_use.dropped := 0;
        end if;
        v_room := greatest(0, least(v_user.n, v_state.per_hour - v_use.taken));
        v_uids := v_uids || v_user.uid;  v_rooms := v_rooms || v_room;
        update notify_use as u
           set hour = v_hour, taken = v_use.taken + v_room, dropped = v_use.dropped + v_user.n - v_room
         where u.uid = v_user.uid;
        if v_room < v_user.n then
            v_over := v_over + v_user.n - v_room;
            if v_use.dropped = 0 then
                insert into event (at, kind, actor, detail)
                values (p_now, 'notifications_limited', 'odcd',
                        jsonb_build_object('user', v_user.name, 'per_hour', v_state.per_hour));
            end if;
        end if;
    end loop;
    if v_over > 0 then
        update notify_state set dropped = dropped + v_over;
    end if;
    insert into outbox (created_at, uid, user_name, channel, address, kind, job_id, facts, next_at)
    select p_now, r.uid, r."user", r.channel, r.address, r.kind, r.job_id, r.facts, p_now
      from (select x.*, i.n, row_number() over (partition by x.uid order by i.n) as nth
              from jsonb_array_elements(p_rows) with ordinality as i (item, n)
             cross join lateral jsonb_to_record(i.item) as x (
                   uid integer, "user" text, channel text, address text, kind text, job_id bigint, facts jsonb)
             where x.channel = 'webhook' or v_state.mail) as r
      join unnest(v_uids, v_rooms) as u (uid, room) on u.uid = r.uid
     where r.nth <= u.room
     order by r.n;
    perform _wake();
end;
$$;
