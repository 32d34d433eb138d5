-- odc._plan_releases: when running jobs release their resources, and when bookings open or close nodes, in order.
-- A job that is overdue, or is ending for another reason than preemption, is expected to end in one second. A job
-- without a time limit never ends.
-- The setting odc.other_end, JSON {job_id, ends_at}, changes the end of one job: see _extension_delays.
-- Arguments  p_going, p_going_at  these jobs end at that time instead of at their limits: microseconds from p_now
--            p_first  read only about this many of the allocations that end first; null: all
-- Returns    parallel arrays in order of time: microseconds from p_now, node position, amounts (0 for a booking);
--            complete_to: all releases before this moment are included; null: all are
create or replace function odc._plan_releases(
    p_now timestamptz, p_node_ids integer[], p_without bigint[], p_going bigint[], p_going_at bigint[], p_first integer,
    out ats bigint[], out positions integer[], out gpus integer[], out cpus integer[], out mems integer[],
    out complete_to bigint)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_until timestamptz;
    v_leaving bigint[] := array(select r.job_id from running as r where r.intent is not null and r.preempted_by is null);
    v_other jsonb := nullif(current_setting('odc.other_end', true), '')::jsonb;
    v_job   bigint := coalesce((v_other ->> 'job_id')::bigint, 0);      -- 0: no job
    v_end   timestamptz := (v_other ->> 'ends_at')::timestamptz;
begin
    if p_first is not null then
        select max(f.ends_at) into v_until
          from (select a.ends_at from allocation as a
                 where a.ends_at < 'infinity' order by a.ends_at limit p_first) as f
        having count(*) = p_first;
        if v_until is not null then
            complete_to := greatest(1000000, (date_part('epoch', v_until - p_now) * 1000000)::bigint);
        end if;
    end if;
    select array_agg(e.at), array_agg(e.ord), array_agg(e.gpus), array_agg(e.cpus), array_agg(e.mem)
      into ats, positions, gpus, cpus, mems
      from (select u.at, n.ord::integer as ord, u.gpus, u.cpus, u.mem
              from (select case when a.leaves then 1000000
                                else greatest(1000000, (date_part('epoch', case when a.job_id = v_job then v_end else a.ends_at end - p_now)
                                                  * 1000000)::bigint) end as at,
                           a.node_id, a.gpus, a.cpus, a.mem_mib as mem
                      from (select f.job_id, f.node_id, f.gpus, f.cpus, f.mem_mib, f.ends_at, false as leaves
                              from _ending_allocations(v_until) as f
                             where v_until is not null and f.job_id <> all (v_leaving)
                             union all
                            select f.job_id, f.node_id, f.gpus, f.cpus, f.mem_mib, f.ends_at, false
                              from allocation as f
                             where v_until is null and f.ends_at < 'infinity' and f.job_id <> all (v_leaving)
                             union all
                            select f.job_id, f.node_id, f.gpus, f.cpus, f.mem_mib, f.ends_at, true
                              from allocation as f
                             where f.job_id = any (v_leaving)) as a
                     where (a.job_id <> v_job or v_until is null or v_end < v_until)
                       and (p_without is null or a.job_id <> all (p_without))
                       and (p_going is null or a.job_id <> all (p_going))
                     union all
                    select g.at, a.node_id, a.gpus, a.cpus, a.mem_mib
                      from unnest(p_going, p_going_at) as g (job_id, at)
                      join allocation as a on a.job_id = g.job_id
                     union all
                    select (date_part('epoch', w.at - p_now) * 1000000)::bigint, b.node_id, 0, 0, 0
                      from _plan_bookings(p_now) as b
                     cross join lateral (values (greatest(b.starts_at, p_now)), (b.ends_at)) as w (at)) as u
              join unnest(p_node_ids) with ordinality as n (id, ord) on n.id = u.node_id
             -- By all columns, so that the same rows have the same digest.
             order by at, ord, gpus, cpus, mem) as e;
end;
$$;
