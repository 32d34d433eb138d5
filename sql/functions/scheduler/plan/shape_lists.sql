-- odc.shape_lists: the shapes and limits of a plan as parallel arrays, see _load_pass. A view only for its row type: it has no rows.
create or replace view odc.shape_lists as
select null::integer[] as shape_ids,
       null::integer[] as leasts,              -- nodes
       null::integer[] as mosts,
       null::integer[] as gpus,                -- of a node
       null::integer[] as cpus,
       null::integer[] as mems,
       null::boolean[] as exclusives,
       null::boolean[] as listed,
       null::integer[] as bookings,
       null::integer[] as switches,
       null::integer[] as waits_s,
       null::integer[] as alt_from,
       null::integer[] as alt_to,
       -- Per alternative.
       null::integer[] as group_from,
       null::integer[] as group_to,
       null::integer[] as alt_groups,
       null::integer[] as alt_partitions,
       null::boolean[] as alt_spreads,
       null::bigint[]  as alt_words,
       -- Per shape the rows of its components, and these rows, see _order_components.
       null::integer[] as component_from,
       null::integer[] as component_to,
       null::integer[] as component_shapes,
       null::integer[] as component_ords,
       null::jsonb[]   as component_lists,
       -- Per shape.
       null::text[]    as refused,
       null::integer[] as dead,
       null::boolean[] as "full",
       null::integer[] as depths,
       -- Per class the rows of what it needs of limits, and these rows.
       null::integer[] as use_from,
       null::integer[] as use_to,
       null::integer[] as buckets,
       null::bigint[]  as needs,
       null::bigint[]  as mores,
       -- Per limit.
       null::bigint[]  as lefts,
       null::boolean[] as consumes,
       null::text[]    as limit_reasons,
       null::text[]    as limit_scopes,
       null::integer[] as limit_scope_ids,
       null::text[]    as limit_pers,
       null::text[]    as limit_whats,
       null::integer[] as limit_accounts,
       null::integer[] as limit_uids,
       null::bigint[]  as spans,
       -- Per class.
       null::integer[] as class_shapes,
       null::boolean[] as defers,
       null::boolean[] as preempts,
       null::boolean   as preempting,
       null::bytea     as digest
 where false;
