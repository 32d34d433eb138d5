-- odc.store_gpu_use: store the GPU usage of ended attempts. A stored row never changes, so a repeated report counts once.
-- Arguments  p_found  array of {job_id, attempt} with one of
--                     again_at: nothing is known yet, ask again then;
--                     covered_s, busy_gpu_s, mem_peak_mib, energy_j, gpu_uuids: as in gpu_use, with gave_up if
--                     that is all;
--                     gave_up alone: nothing more will be known; earlier measurements stay
-- Returns    the number of stored attempts
-- Locks      term for share; gpu_use by job and attempt
-- Raises     OD020 LeadershipLost
create or replace function odc.store_gpu_use(p_term bigint, p_found jsonb, p_now timestamptz)
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_stored integer;
begin
    perform _hold_term(p_term);
    with found as (
        select f.* from jsonb_to_recordset(p_found) as f (
            job_id bigint, attempt integer, again_at timestamptz, covered_s double precision, busy_gpu_s double precision,
            mem_peak_mib integer, energy_j double precision, gpu_uuids text[], gave_up text)
    ), owed as (
        select u.job_id, u.attempt
          from gpu_use as u
          join found as f on f.job_id = u.job_id and f.attempt = u.attempt
         where u.stored_at is null and u.ended_at is not null
         order by u.job_id, u.attempt
           for update of u
    ), stored as (
        update gpu_use as u
           set again_at = f.again_at,
               -- Never more than was allocated: the ends come from other clocks than the scrapes.
               covered_s = least(u.held_s, coalesce(f.covered_s, u.covered_s)),
               busy_gpu_s = least(u.held_s * u.gpus, coalesce(f.busy_gpu_s, u.busy_gpu_s)),
               mem_peak_mib = coalesce(f.mem_peak_mib, u.mem_peak_mib), energy_j = coalesce(f.energy_j, u.energy_j),
               gpu_uuids = coalesce(f.gpu_uuids, u.gpu_uuids), gave_up = f.gave_up,
               stored_at = case when f.again_at is null then p_now end
          from found as f
          join owed as o on o.job_id = f.job_id and o.attempt = f.attempt
         where u.job_id = f.job_id and u.attempt = f.attempt
        returning u.stored_at
    )
    select count(*) filter (where s.stored_at is not null) into v_stored from stored as s;
    return v_stored;
end;
$$;
