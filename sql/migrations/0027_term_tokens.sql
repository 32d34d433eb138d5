-- Which database connections belong to the daemon that leads: a new leader terminates them all.
-- Locks term for an instant; a pass or a beat under way ends first.
set local lock_timeout = '30s';
alter table odc.term add column tokens text[] not null default '{}';   -- the last words of their application_name
