-- odc.set_gpu_meter: set the source of GPU usage from now on, and when an allocated GPU counts as idle.
-- Arguments  p_source        prometheus, nvml; null: there is no source
--            p_idle_ratio    a GPU used less than this is unused
--            p_idle_after_s  and is idle after this time
-- Locks      term for share; gpu_meter
-- Raises     OD020 LeadershipLost
create or replace function odc.set_gpu_meter(
    p_term bigint, p_source text, p_idle_ratio double precision, p_idle_after_s integer)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    update gpu_meter set source = p_source, idle_ratio = p_idle_ratio, idle_after_s = p_idle_after_s
     where (source, idle_ratio, idle_after_s) is distinct from (p_source, p_idle_ratio, p_idle_after_s);
end;
$$;
