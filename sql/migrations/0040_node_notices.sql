-- Users of dev servers are notified when a node of theirs is drained, or has maintenance.
-- Locks reservation for an instant: the new column has no default.

-- The last notice about its nodes that was delivered; null: none, or that it no longer holds.
alter table reservation add column node_notice text;
