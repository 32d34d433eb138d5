-- odc._used_time: GPU-milliseconds used per account and user, as billed: ended attempts, decayed to p_now, plus the
-- usage of running jobs so far. Users without any usage also have a row.
-- Returns    one row per account and user with an association, running jobs or past usage
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
