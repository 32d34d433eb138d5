-- odc.candidate: the job at hand in a walk over the queue, see _describe_job. A view only for its row type: it has no rows.
create or replace view odc.candidate as
select null::bigint  as job_id,
       null::integer as class,
       null::integer as shape,
       null::integer as limit_s,
       null::bigint  as limit_us,            -- its time limit as a moment from the pass's time; without one it is far away
       null::integer as depth,               -- how many protected jobs may claim a group that it may use
       null::boolean as claims_nodes,        -- it is a preemptor, or keeps its planned start: it may run only on its nodes
       -- Its request: nodes; amounts of a node.
       null::integer as least,
       null::integer as most,
       null::integer as gpus,
       null::integer as cpus,
       null::integer as mem,                 -- MiB
       null::boolean as exclusive,
       null::integer as booking,
       null::integer as blocks_most,         -- in at most so many topology blocks; null: any
       null::bigint  as lapse,               -- when this wish lapses, microseconds; null: never
       null::integer as slot,                -- its place in the plan's array dead
       -- Rows of the alternatives, of their groups, and of what it needs of limits.
       null::integer as alt_from,
       null::integer as alt_to,
       null::integer as groups_from,
       null::integer as groups_to,
       null::integer as use_from,
       null::integer as use_to
 where false;
