-- odc._next_sweep: when a sweep has something to do next, at most one minute from now.
-- Arguments  p_aside  jobs that the next sweeps leave out
create or replace function odc._next_sweep(p_now timestamptz, p_keeps_time boolean, p_node_grace interval, p_aside bigint[])
returns timestamptz
language sql stable set search_path = odc, pg_temp as $$
    select least(p_now + interval '60 seconds',
                 (select min(case when w.starts_at > p_now then w.starts_at else w.ends_at end)
                    from booking as b cross join lateral _booking_window(b, p_now) as w
                   where b.state in ('PLANNED', 'ACTIVE')),
                 (select min(begin_at) from pending where not begun and job_id <> all (p_aside)),
                 (select min(deadline_at) from pending where job_id <> all (p_aside)),
                 (select min(deadline_at) from running where intent is null and job_id <> all (p_aside)),
                 case when not p_keeps_time then _next_end(p_aside) end,
                 (select min(state_at) + p_node_grace from node
                   where state = 'DOWN' and reason_by is null and state_at > p_now - p_node_grace),
                 (select min(due_at) from dependency where state = 'waiting' and due_at > p_now));
$$;
