-- odc.release_lists: what running jobs release, as far as a plan has read it, see _plan_releases. A view only for its row type: it has
-- no rows.
create or replace view odc.release_lists as
select null::bigint[]  as ats,               -- in order, microseconds from the pass's time; null: nothing was read
       null::integer[] as nodes,
       null::integer[] as gpus,
       null::integer[] as cpus,
       null::integer[] as mems,
       null::bigint    as complete_to,       -- all releases until then were read; null: all
       null::integer   as first_ends,        -- how many ends of jobs were wanted
       null::bigint    as digest
 where false;
