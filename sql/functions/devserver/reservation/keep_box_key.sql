-- odc.keep_box_key: store the given secrets of a reservation, unless it already has some.
-- Returns    the secrets it has from now on; no row: it is over
-- Locks      term for share
-- Raises     OD020 LeadershipLost
create or replace function odc.keep_box_key(
    p_term bigint, p_job_id bigint, p_host_key text, p_host_public text, p_gang_key text, p_gang_public text, p_jupyter_token text,
    p_now timestamptz)
returns table (host_key text, host_public text, gang_key text, gang_public text, jupyter_token text)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    insert into box_key as k (job_id, host_key, host_public, gang_key, gang_public, jupyter_token, made_at)
    select p_job_id, p_host_key, p_host_public, p_gang_key, p_gang_public, p_jupyter_token, p_now
     where exists (select from running as r where r.job_id = p_job_id)
        on conflict (job_id) do update set jupyter_token = excluded.jupyter_token where k.jupyter_token is null;
    return query
    select k.host_key, k.host_public, k.gang_key, k.gang_public, k.jupyter_token from box_key as k where k.job_id = p_job_id;
end;
$$;
