-- odc._ending_allocations: the allocations that end before a moment, by index. Without the setting PostgreSQL may read all
-- of them, because it does not know how many these are.
create or replace function odc._ending_allocations(p_until timestamptz)
returns table (job_id bigint, node_id integer, gpus integer, cpus integer, mem_mib integer, ends_at timestamptz)
language plpgsql stable set search_path = odc, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
begin
    return query
    select a.job_id, a.node_id, a.gpus, a.cpus, a.mem_mib, a.ends_at from allocation as a where a.ends_at < p_until;
end;
$$;
