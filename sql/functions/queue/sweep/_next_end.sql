-- odc._next_end: when the next running job reaches its time limit, or is due for its signal before the limit.
-- Arguments  p_aside  jobs to leave out
create or replace function odc._next_end(p_aside bigint[] default '{}')
returns timestamptz
language sql stable as $$
    select least((select min(r.ends_at) from odc.running as r where r.intent is null and r.ends_at < 'infinity' and r.job_id <> all (p_aside)),
                 (select min(r.ends_at - make_interval(secs => j.signal_before_s))
                    from odc.running as r
                    join odc.job as j on j.id = r.job_id
                   where r.intent is null and not r.signalled and r.ends_at < 'infinity' and j.signal_number is not null
                     and r.job_id <> all (p_aside)))
$$;
