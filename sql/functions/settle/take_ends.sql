-- odc.take_ends: running attempts whose time limit moved since the executor was told; marks them told.
-- Returns    ends_at null: no time limit any more
create or replace function odc.take_ends(p_term bigint)
returns table (job_id bigint, attempt integer, ends_at timestamptz)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    return query
    update running as r set sent_ends_at = r.ends_at
     where r.sent_ends_at is distinct from r.ends_at
    returning r.job_id, r.attempt, nullif(r.ends_at, 'infinity');
end;
$$;
