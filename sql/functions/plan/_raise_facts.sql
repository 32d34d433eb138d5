-- odc._raise_facts: tell a pass that is between its snapshot and its writes that what it trusts has changed.
-- Locks      the caller holds the turn; facts
create or replace function odc._raise_facts()
returns void
language sql volatile as $$
    update odc.facts set version = version + 1;
$$;
