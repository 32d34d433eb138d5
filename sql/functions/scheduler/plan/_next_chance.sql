-- odc._next_chance: the next moment at which time alone may let a pending job start: a request for few topology blocks
-- expires, a running job is no longer exempt from preemption, or a claim ends. Changes made by sweep are not included.
-- Returns    null: there is none
create or replace function odc._next_chance(p_now timestamptz)
returns timestamptz
language sql stable as $$
    select min(u.at)
      from (select p.queued_at + make_interval(secs => s.switches_wait_s) as at
              from odc.shape as s
              join odc.pending as p on p.shape_id = s.id
             where s.switches_wait_s is not null and p.ready
             union all
            select r.running_at + make_interval(secs => v.exempt_s)
              from odc.qos as v
              join odc.running as r on r.qos_id = v.id
             where v.exempt_s > 0 and exists (select from odc.qos as q where v.id = any (q.preempts))
             union all
            select p.claim_ends_at from odc.pending as p where p.claim_nodes is not null) as u
     where u.at > p_now
$$;
