-- odc.keep_output: store a member's output, which its executor is about to lose. The longest version is kept.
-- Arguments  p_content  compressed by zlib;  p_written  bytes the member wrote; p_content may lack the middle
--            p_through  the member may still be writing, and its log was read up to this position; null: it has ended
create or replace function odc.keep_output(
    p_job_id bigint, p_attempt integer, p_rank integer, p_content bytea, p_written bigint, p_now timestamptz,
    p_through text default null)
returns void
language sql volatile set search_path = odc, pg_temp as $$
    insert into kept_output (job_id, attempt, rank, kept_at, written, content, read_through)
    values (p_job_id, p_attempt, p_rank, p_now, p_written, p_content, p_through)
        on conflict (job_id, attempt, rank) do update
       set kept_at = excluded.kept_at,
           written = greatest(excluded.written, kept_output.written),
           content = case when excluded.written >= kept_output.written then excluded.content else kept_output.content end,
           read_through = excluded.read_through
     -- A part that was read meanwhile never replaces the end.
     where kept_output.read_through is not null and (excluded.read_through is null or excluded.written >= kept_output.written)
        or excluded.read_through is null and excluded.written >= kept_output.written
$$;
