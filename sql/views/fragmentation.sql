-- How free GPUs are distributed over the nodes that are up, per type, and the largest jobs that could start on them now.
-- gpus_whole: on nodes with all GPUs free; fragmented: the fraction of the free ones that are on other nodes, null if
-- none is free; largest_gang: number of whole nodes that one gang could take; fits_n: number of jobs with n GPUs on one
-- node.
create or replace view odc.fragmentation as
with place as (
    select g.gpu_type, f.gpus as free, f.gpus = g.gpus as whole,
           case when t.efa_per_node > 0 then g.efa_domain end as domain, g.gpus
      from odc.node_free as f
      join odc.node_group as g on g.id = f.group_id
      join odc.gpu_type as t on t.name = g.gpu_type
     where f.up and g.gpus > 0
), domain as (
    select gpu_type, domain, count(*) as nodes, count(*) filter (where whole) as nodes_whole
      from place group by gpu_type, domain
)
select p.gpu_type, count(*) as nodes, sum(p.gpus) as gpus, sum(p.free) as gpus_free,
       coalesce(sum(p.free) filter (where p.whole), 0) as gpus_whole,
       round(coalesce(sum(p.free) filter (where not p.whole), 0)::numeric / nullif(sum(p.free), 0), 4) as fragmented,
       count(*) filter (where p.whole) as nodes_whole,
       (select max(d.nodes_whole) from domain as d where d.gpu_type = p.gpu_type) as largest_gang,
       sum(p.free) as fits_1, sum(p.free / 2) as fits_2, sum(p.free / 4) as fits_4, sum(p.free / 8) as fits_8,
       (select json_agg(json_build_object('domain', d.domain, 'nodes', d.nodes, 'nodes_whole', d.nodes_whole)
                        order by d.domain nulls first)
          from domain as d where d.gpu_type = p.gpu_type) as domains
  from place as p
 group by p.gpu_type;
