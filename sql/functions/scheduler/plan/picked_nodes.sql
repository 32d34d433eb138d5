-- odc.picked_nodes: the result of _place_job. A view only for its row type: it has no rows.
create or replace view odc.picked_nodes as
select null::integer[] as picks,             -- the nodes found; null or empty: the job does not fit now
       null::integer   as alternative,       -- the last one tried
       null::bigint    as blocked_at,        -- the latest moment at which a point is in the way of a node that fits otherwise;
                                             -- -1: none
       -- If a pin moved, or was found unable to, else null.
       null::bigint[]  as points,
       null::bigint[]  as protected,
       -- Of a heterogeneous job: the arrays after its start, as are points and protected; how many components were tried.
       null::bigint[]  as free,
       null::bigint[]  as allocs,
       null::integer   as placed
 where false;
