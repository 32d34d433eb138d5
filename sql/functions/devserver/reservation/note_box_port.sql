-- odc.note_box_port: record the node port through which a reservation is reached. An ended attempt is ignored.
-- Arguments  p_addresses  of its nodes, by rank
-- Locks      term for share
-- Raises     OD020 LeadershipLost
create or replace function odc.note_box_port(p_term bigint, p_job_id bigint, p_attempt integer, p_port integer, p_addresses text[])
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    insert into box_port as o (job_id, attempt, port, addresses)
    select r.job_id, r.attempt, p_port, p_addresses from running as r where r.job_id = p_job_id and r.attempt = p_attempt
        on conflict (job_id) do update set attempt = excluded.attempt, port = excluded.port, addresses = excluded.addresses;
    perform _wake();
end;
$$;
