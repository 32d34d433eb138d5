-- Nodes, their use, and why a node starts no jobs; without nodes that were deleted or removed by their elastic group.
create or replace view odc_report.node as
select n.name, n.gpu_type, n.zone, n.state::text as state, n.gpus, n.gpus - f.gpus as gpus_used, n.cpus, n.cpus - f.cpus as cpus_used,
       f.jobs, n.reason, n.state_at, q.since as quarantined_at
  from odc.node as n
  join odc.node_free as f on f.node_id = n.id
  left join odc.node_quarantine as q on q.node_id = n.id
 where n.state <> 'DOWN' or not exists (select from odc.elastic_gone as e where e.node_id = n.id);
