-- Which limit a protected job lacks. Locks planned and planned_past for an instant: the new columns have no default.

alter table planned add column reason text;        -- Slurm's name; null: it lacks nodes
alter table planned_past add column reason text;
