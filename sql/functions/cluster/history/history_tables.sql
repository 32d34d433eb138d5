-- odc.history_tables: the tables with rows of a job.
-- Returns    each table; its column with the job's id; whether an export includes it (not keys and tokens); whether a restore
--            brings it back (not the past, a part of which would be wrong); and whether it is partitioned by that column
create or replace function odc.history_tables()
returns table (name text, key text, exported boolean, restored boolean, partitioned boolean)
language sql immutable as $$
    values ('job', 'id', true, true, true), ('attempt', 'job_id', true, true, true),
           ('step', 'job_id', true, true, false),
           ('job_mail', 'job_id', false, false, false), ('outbox', 'job_id', false, false, false),
           ('prediction', 'job_id', true, true, true), ('event', 'job_id', true, true, false),
           ('gpu_use', 'job_id', true, true, false), ('kept_output', 'job_id', true, true, false),
           ('array_job', 'job_id', true, true, false), ('reservation', 'job_id', true, true, false),
           ('reservation_warning', 'job_id', true, false, false), ('box_phase', 'job_id', true, true, false),
           ('box_restart', 'job_id', true, true, false), ('box_look', 'job_id', false, false, false),
           ('box_port', 'job_id', false, false, false), ('box_key', 'job_id', false, false, false),
           ('box_jupyter', 'job_id', false, false, false),
           ('job_past', 'id', true, false, false), ('pending_past', 'job_id', true, false, false),
           ('running_past', 'job_id', true, false, false), ('allocation_past', 'job_id', true, false, false),
           ('array_job_past', 'job_id', true, false, false), ('dependency_past', 'job_id', true, false, false),
           ('planned_past', 'job_id', true, false, false)
$$;
