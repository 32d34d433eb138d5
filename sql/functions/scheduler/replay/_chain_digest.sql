-- odc._chain_digest: link a pass to the one before: a digest of that pass's chain digest and of this pass's input and
-- plan.
create or replace function odc._chain_digest(
    p_before bytea, p_at timestamptz, p_policy text, p_last_event_id bigint, p_read bytea, p_plan bytea)
returns bytea
language sql stable as $$
    select sha256(coalesce(p_before, '') || timestamptz_send(p_at) || convert_to(p_policy, 'UTF8')
                  || int8send(coalesce(p_last_event_id, 0)) || p_read || p_plan);
$$;
