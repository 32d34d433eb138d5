-- odc._decayed_usage: the usage of ended attempts, decayed to p_now: halved after each priority_setting.half_life_s.
-- Returns    the rows of usage: GPU-milliseconds as billed, and of GPUs
create or replace function odc._decayed_usage(p_now timestamptz)
returns table (account_id integer, uid integer, qos_id integer, used_ms bigint, used_gpu_ms bigint)
language sql stable as $$
    select u.account_id, u.uid, u.qos_id, odc._decay(u.used_ms, u.halvings, u.rest),
           odc._decay(u.used_gpu_ms, u.halvings, u.rest)
      from (select u.*, d.*
              from odc.usage as u
             cross join lateral odc._half_lives(u.used_at, p_now) as d
            offset 0) as u
$$;
