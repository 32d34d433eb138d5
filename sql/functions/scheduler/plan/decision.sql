-- odc.decision: the columns of a plan, as decide returns it. A view only for its row type: it has no rows.
create or replace view odc.decision as
select null::integer       as looked,              -- jobs considered
       null::integer       as classes,             -- how many classes there are
       null::boolean       as more,                -- whether p_start_limit cut the plan short
       -- Starts: an array's row once per task.
       null::bigint[]      as start_jobs,
       null::integer[]     as start_partitions,
       null::integer[]     as start_nodes,         -- number of nodes
       null::integer[]     as start_limits_s,
       -- Their allocations, one after the other.
       null::integer[]     as alloc_nodes,
       null::bigint[]      as alloc_masks,
       null::integer[]     as alloc_gpus,
       null::integer[]     as alloc_cpus,
       null::integer[]     as alloc_mems,          -- MiB
       -- Protected jobs.
       null::bigint[]      as head_jobs,
       null::timestamptz[] as head_ats,            -- planned start; null: not in sight
       null::text[]        as head_nodes,          -- node ids, separated by commas
       null::integer[]     as head_fittings,       -- nodes that fit now
       null::integer[]     as head_shapes,
       -- Shapes whose jobs cannot start: Slurm's reason; the protected job that they wait behind.
       null::integer[]     as refused_shapes,
       null::text[]        as refused_reasons,
       null::bigint[]      as refused_heads,
       -- Classes that are over a limit, and Slurm's name of it.
       null::integer[]     as limited_shapes,
       null::integer[]     as limited_limits_s,
       null::integer[]     as limited_uids,
       null::integer[]     as limited_accounts,
       null::integer[]     as limited_qos,
       null::text[]        as limited_reasons,
       -- Jobs to end, for which job, at what cost (see _plan_victims).
       null::bigint[]      as victim_jobs,
       null::bigint[]      as victim_for,
       null::bigint[]      as victim_costs,
       -- Digests of everything read, for a replay to compare: 8 bytes each for classes, nodes, shapes, limits, queue,
       -- releases.
       null::bytea         as read_digest,
       null::text[]        as head_limits,         -- Slurm's name of a limit that a protected job lacks; null: it lacks nodes
       null::bigint[]      as limited_heads        -- the protected job that has reserved what such a class lacks; null: none
 where false;
