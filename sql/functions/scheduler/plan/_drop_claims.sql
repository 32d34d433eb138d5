-- odc._drop_claims: drop claims whose victims are all gone and whose preemptor still did not start, because a limit, a
-- node or the job itself changed in the meantime. The job then waits like any other.
-- Returns    whether there were any
-- Locks      the turn; pending rows
create or replace function odc._drop_claims(p_now timestamptz)
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    if not exists (select from pending as p where p.claim_nodes is not null) then
        return false;
    end if;
    perform _take_turn(p_now);
    update pending as p set claim_nodes = null, claimed_at = null, claim_ends_at = null
     where p.claim_nodes is not null
       and (p.claim_ends_at <= p_now or not p.ready)
       and not exists (select from running as r where r.preempted_by = p.job_id);
    return found;
end;
$$;
