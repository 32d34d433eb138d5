-- odc._warning_levels: the warnings of all active reservations before their current ends, due or to come; at 0 minutes
-- their time is over, and the grace period begins.
create or replace function odc._warning_levels()
returns table (job_id bigint, expires_at timestamptz, minutes integer, due_at timestamptz)
language sql stable as $$
    select v.job_id, v.expires_at, m.minutes, v.expires_at - make_interval(mins => m.minutes)
      from odc.reservation as v
      join odc.running as r on r.job_id = v.job_id and r.state = 'RUNNING' and r.intent is null
     cross join unnest('{30,15,5,0}'::integer[]) as m (minutes)
     where v.launched_at is not null
       and v.expires_at - make_interval(mins => m.minutes) > greatest(v.launched_at, v.extended_at)
$$;
