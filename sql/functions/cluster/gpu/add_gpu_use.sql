-- odc.add_gpu_use: add the measurements of running attempts since the last call to their sums. A part that begins
-- before the end of the last one is already known, so a repeated part counts once. A part of an attempt that has ended
-- since is added, too, as long as the attempt is not stored.
-- Arguments  p_parts  array of {job_id, attempt, from, to, covered_s, busy_gpu_s, mem_peak_mib, energy_j, gpu_uuids}
-- Locks      term for share; gpu_use by job and attempt
-- Raises     OD020 LeadershipLost
create or replace function odc.add_gpu_use(p_term bigint, p_parts jsonb)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    with part as (
        select p.* from jsonb_to_recordset(p_parts) as p (
            job_id bigint, attempt integer, "from" timestamptz, "to" timestamptz, covered_s double precision,
            busy_gpu_s double precision, mem_peak_mib integer, energy_j double precision, gpu_uuids text[])
    )
    insert into gpu_use as u (
        job_id, attempt, gpus, running_at, source, covered_s, busy_gpu_s, mem_peak_mib, energy_j, gpu_uuids, seen_until)
    select p.job_id, p.attempt, h.gpus, h.running_at, 'nvml', p.covered_s, p.busy_gpu_s, p.mem_peak_mib, p.energy_j,
           coalesce(p.gpu_uuids, '{}'), p."to"
      from part as p
     cross join lateral (
           select _real_gpus(r.job_id) as gpus, r.running_at
             from running as r where r.job_id = p.job_id and r.attempt = p.attempt and r.running_at is not null
            union all
           select e.gpus, e.running_at
             from gpu_use as e where e.job_id = p.job_id and e.attempt = p.attempt and e.ended_at is not null) as h
     where h.gpus > 0
     order by p.job_id, p.attempt
        on conflict (job_id, attempt) do update
       set covered_s = u.covered_s + excluded.covered_s, busy_gpu_s = u.busy_gpu_s + excluded.busy_gpu_s,
           mem_peak_mib = greatest(u.mem_peak_mib, excluded.mem_peak_mib),
           energy_j = case when excluded.energy_j is null then u.energy_j else coalesce(u.energy_j, 0) + excluded.energy_j end,
           gpu_uuids = case when u.gpu_uuids @> excluded.gpu_uuids then u.gpu_uuids
                            else array(select distinct x from unnest(u.gpu_uuids || excluded.gpu_uuids) as x order by x) end,
           seen_until = excluded.seen_until
     where u.stored_at is null
       and (u.seen_until is null or exists (
            select from part as p where p.job_id = u.job_id and p.attempt = u.attempt and p."from" >= u.seen_until));
end;
$$;
