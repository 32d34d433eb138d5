-- odc.keep_output: store a member's output, which its executor is about to lose. The longest version is kept.
-- Arguments  p_content  compressed by zlib;  p_written  bytes the member wrote; p_content may lack the middle
create or replace function odc.keep_output(
    p_job_id bigint, p_attempt integer, p_rank integer, p_content bytea, p_written bigint, p_now timestamptz)
returns void
language sql volatile set search_path = odc, pg_temp as $$
    insert into kept_output (job_id, attempt, rank, kept_at, written, content)
    values (p_job_id, p_attempt, p_rank, p_now, p_written, p_content)
        on conflict (job_id, attempt, rank) do update
       set kept_at = excluded.kept_at, written = excluded.written, content = excluded.content
     where excluded.written >= kept_output.written
$$;
