-- odc.note_gpu_now: record the current GPU usage of running jobs. A GPU is idle for as long as consecutive observations
-- found it idle; time without an observation counts as use.
-- Arguments  p_looks  array of {job_id, attempt, util_ratio, mem_used_mib, resting: [UUID], gpus: [{rank, index, uuid, model}]};
--                     an attempt that does not run is ignored; attempt, rank null: those of this machine. resting: the
--                     GPUs that were used less than gpu_meter says
--            p_since  since when they have been observed idle
--            p_good_until  when the next observation is overdue
-- Locks      term for share; gpu_now by job, gpu by node
-- Raises     OD020 LeadershipLost
create or replace function odc.note_gpu_now(
    p_term bigint, p_looks jsonb, p_since timestamptz, p_good_until timestamptz, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    with look as (
        select r.job_id, r.attempt, r.running_at, l.util_ratio, l.mem_used_mib, l.resting
          from jsonb_to_recordset(p_looks) as l (
               job_id bigint, attempt integer, util_ratio double precision, mem_used_mib integer, resting text[], gpus jsonb)
          join running as r on r.job_id = l.job_id and r.attempt = coalesce(l.attempt, r.attempt) and r.running_at is not null
    )
    insert into gpu_now as g (job_id, attempt, at, good_until, util_ratio, mem_used_mib, idle, idle_since)
    select l.job_id, l.attempt, p_now, p_good_until, l.util_ratio, l.mem_used_mib, i.idle, i.since
      from look as l
      left join gpu_now as o on o.job_id = l.job_id and o.attempt = l.attempt and o.good_until > p_now
     cross join lateral (
           select coalesce(jsonb_object_agg(x.uuid, x.since), '{}') as idle, min(x.since) as since
             from (select u.uuid, coalesce((o.idle ->> u.uuid)::timestamptz, greatest(l.running_at, p_since)) as since
                     from unnest(l.resting) as u (uuid)) as x) as i
     order by l.job_id
        on conflict (job_id) do update
       set attempt = excluded.attempt, at = excluded.at, good_until = excluded.good_until, util_ratio = excluded.util_ratio,
           mem_used_mib = excluded.mem_used_mib, idle = excluded.idle, idle_since = excluded.idle_since;

    insert into gpu as g (node_id, gpu_index, uuid, model, seen_at)
    select distinct on (a.node_id, s.index) a.node_id, s.index, s.uuid, s.model, p_now
      from jsonb_to_recordset(p_looks) as l (job_id bigint, attempt integer, gpus jsonb)
      join running as r on r.job_id = l.job_id and r.attempt = coalesce(l.attempt, r.attempt)
     cross join lateral jsonb_to_recordset(l.gpus) as s (rank integer, index integer, uuid text, model text)
      join allocation as a on a.job_id = l.job_id and a.rank = coalesce(s.rank, a.rank)
      join node as n on n.id = a.node_id and not n.declared
     where s.index is not null
     order by a.node_id, s.index, l.job_id
        on conflict (node_id, gpu_index) do update
       set uuid = excluded.uuid, model = excluded.model, seen_at = excluded.seen_at
     -- Once an hour is enough for what hardly ever changes.
     where (g.uuid, g.model) is distinct from (excluded.uuid, excluded.model) or g.seen_at < p_now - interval '1 hour';
end;
$$;
