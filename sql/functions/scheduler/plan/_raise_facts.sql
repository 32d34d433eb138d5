-- odc._raise_facts: raise facts.version, so that a pass between its snapshot and its writes sees that facts have changed.
-- Locks      the caller holds the turn; facts
create or replace function odc._raise_facts()
returns void
language sql volatile as $$
    update odc.facts set version = version + 1;
$$;
