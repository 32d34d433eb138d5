-- odc.leave_term: release leadership at a clean stop, so that a follower need not wait for the lease.
create or replace function odc.leave_term(p_term bigint)
returns void
language sql volatile as $$
    update odc.term set holder = null, backend_pid = null where term = p_term;
$$;
