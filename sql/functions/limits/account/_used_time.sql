-- odc._used_time: GPU-milliseconds used per account and user, as billed: what ended attempts used, decayed to now,
-- and what running ones have used so far. Who waits and has used nothing has a row, too.
-- Returns    one row per account and user with an association, a job or a past
create or replace function odc._used_time(p_now timestamptz)
returns table (account_id integer, uid integer, used_ms bigint)
language sql stable as $$
    select u.account_id, u.uid, sum(u.used_ms)::bigint
      from (select d.account_id, d.uid, d.used_ms from odc._decayed_usage(p_now) as d
             union all
            select r.account_id, r.uid, (r.used_ms * q.usage_factor)::bigint
              from odc._running_use(p_now) as r
              join odc.qos as q on q.id = r.qos_id
             union all
            select a.account_id, a.uid, 0 from odc.association as a) as u
     group by u.account_id, u.uid
$$;
