-- odc._keep_pass: store a pass with everything that a replay needs. A pass that considered no job is not stored.
-- Arguments  p_plan     the result of decide, with read_digest, and its input: snapshot, policy, last_event_id
--            p_dropped  jobs of the plan that were left out; null: none
-- Returns    the pass's id, or null
create or replace function odc._keep_pass(
    p_term bigint, p_now timestamptz, p_plan record, p_started integer, p_start_limit integer, p_dropped bigint[])
returns bigint
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_id     bigint;
    v_digest bytea;
begin
    if p_plan.looked = 0 and p_started = 0 then
        return null;
    end if;
    v_digest := _plan_digest(p_plan);
    insert into pass (term, at, last_event_id, looked, started, took_ms, snapshot, policy, start_limit, read_digest,
                      plan_digest, dropped, chain_digest)
    values (p_term, p_now, p_plan.last_event_id, p_plan.looked, p_started, 0, _without_own(p_plan.snapshot), p_plan.policy,
            p_start_limit, p_plan.read_digest, v_digest, p_dropped,
            _chain_digest((select s.chain_digest from pass as s order by s.id desc limit 1),
                          p_now, p_plan.policy, p_plan.last_event_id, p_plan.read_digest, v_digest))
    returning id into v_id;
    return v_id;
end;
$$;
