-- Attempts that are about to lose a member, and signals that are delivered to each member.
-- Locks running and allocation for an instant each: the new columns have no default.

-- The last report that a member is about to be lost; failures of other members soon after are caused by it.
alter table running
    add column doomed_at     timestamptz,
    add column doomed_detail text;

-- When the member acknowledged the signal before the time limit.
alter table allocation add column signalled_at timestamptz;
