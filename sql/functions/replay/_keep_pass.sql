-- odc._keep_pass: write down a pass, with all that a replay needs. One that looked at nothing leaves nothing.
-- Arguments  p_plan      what decide answered, with read_digest
--            p_snapshot  what it saw
-- Returns    the pass's id, or null
create or replace function odc._keep_pass(
    p_term bigint, p_now timestamptz, p_plan record, p_started integer, p_start_limit integer, p_snapshot pg_snapshot)
returns bigint
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_id     bigint;
    v_event  bigint;
    v_policy text;
    v_digest bytea;
begin
    if p_plan.looked = 0 and p_started = 0 then
        return null;
    end if;
    select max(e.id) into v_event from event as e;
    v_policy := _policy_version();
    v_digest := _plan_digest(p_plan);
    insert into pass (term, at, last_event_id, looked, started, took_ms, snapshot, policy, start_limit, read_digest,
                      plan_digest, chain_digest)
    values (p_term, p_now, v_event, p_plan.looked, p_started, 0, p_snapshot, v_policy, p_start_limit, p_plan.read_digest,
            v_digest,
            _chain_digest((select s.chain_digest from pass as s order by s.id desc limit 1),
                          p_now, v_policy, v_event, p_plan.read_digest, v_digest))
    returning id into v_id;
    return v_id;
end;
$$;
