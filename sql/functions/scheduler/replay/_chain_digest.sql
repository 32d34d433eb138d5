-- odc._chain_digest: what ties a pass to the one before it: a digest of that one's and of what this one read and answered.
create or replace function odc._chain_digest(
    p_before bytea, p_at timestamptz, p_policy text, p_last_event_id bigint, p_read bytea, p_plan bytea)
returns bytea
language sql stable as $$
    select sha256(coalesce(p_before, '') || timestamptz_send(p_at) || convert_to(p_policy, 'UTF8')
                  || int8send(coalesce(p_last_event_id, 0)) || p_read || p_plan);
$$;
