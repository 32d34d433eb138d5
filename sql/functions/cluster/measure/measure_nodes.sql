-- odc.measure_nodes: the states of GPUs and nodes; see sql/functions/cluster/measure/README.md for the form.
-- A GPU is allocated to a job, or used by other software; otherwise it is idle, or, for whole nodes, booked, draining
-- or down.
create or replace function odc.measure_nodes(p_now timestamptz)
returns table (metric text, labels text[], value double precision)
language sql stable as $$
    with place as materialized (
        select n.id, n.gpu_type, n.state, n.gpus - f.gpus as taken, f.gpus as free, g.partition_ids,
               case n.state when 'DRAIN' then 'draining' when 'DOWN' then 'down'
                            else case when n.id in (select b.node_id from odc.booking as k join odc.booking_node as b on b.booking_id = k.id
                                                     where k.state = 'ACTIVE')
                                      then 'booked' else 'idle' end end as rest
          from odc.node as n
          join odc.node_free as f on f.node_id = n.id
          join odc.node_group as g on g.id = f.group_id
         where n.state <> 'DOWN' or not exists (select from odc.elastic_gone as e where e.node_id = n.id)
    ), state (state) as (
        values ('allocated'), ('idle'), ('booked'), ('draining'), ('down')
    ), gpu as materialized (
        select p.gpu_type, p.partition_ids, s.state,
               sum(case when s.state = 'allocated' then p.taken when s.state = p.rest then p.free else 0 end) as gpus
          from place as p cross join state as s
         where p.taken + p.free > 0
         group by p.gpu_type, p.partition_ids, s.state
    ), type as materialized (
        select distinct g.gpu_type from gpu as g
    )
    select 'odcd_gpus', array[g.state, g.gpu_type], sum(g.gpus)::double precision from gpu as g group by g.state, g.gpu_type
     union all
    select 'odcd_partition_gpus', array[t.name, g.state, g.gpu_type], sum(g.gpus)::double precision
      from gpu as g cross join lateral unnest(g.partition_ids) as u (id) join odc.partition as t on t.id = u.id
     group by t.name, g.state, g.gpu_type
     union all
    select 'odcd_gpu_fits', array[t.gpu_type, n.gpus::text],
           coalesce(case n.gpus when 1 then f.fits_1 when 2 then f.fits_2 when 4 then f.fits_4 else f.fits_8 end, 0)::double precision
      from type as t cross join (values (1), (2), (4), (8)) as n (gpus)
      left join odc.fragmentation as f on f.gpu_type = t.gpu_type
     union all
    select 'odcd_gang_nodes_max', array[t.gpu_type], coalesce(f.largest_gang, 0)::double precision
      from type as t left join odc.fragmentation as f on f.gpu_type = t.gpu_type
     union all
    select 'odcd_gpus_fragmented', array[t.gpu_type], coalesce(f.gpus_free - f.gpus_whole, 0)::double precision
      from type as t left join odc.fragmentation as f on f.gpu_type = t.gpu_type
     union all
    select 'odcd_nodes', array[s.state::text, t.gpu_type], count(p.id)::double precision
      from (select distinct q.gpu_type from place as q) as t
     cross join unnest(enum_range(null::odc.node_state)) as s (state)
      left join place as p on p.gpu_type = t.gpu_type and p.state = s.state
     group by s.state, t.gpu_type
     union all
    select 'odcd_nodes_quarantined', '{}', count(*)::double precision from odc.node_quarantine as q where q.drained
$$;
