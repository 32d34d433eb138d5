-- odc.list_fragmentation: how free GPUs are distributed over the nodes, per type; see odc.fragmentation.
-- Returns    a JSON array
create or replace function odc.list_fragmentation()
returns text
language sql stable as $$
    select coalesce(json_agg(json_build_object(
               'gpu_type', f.gpu_type, 'nodes', f.nodes, 'gpus', f.gpus, 'gpus_free', f.gpus_free,
               'gpus_whole', f.gpus_whole, 'fragmented', f.fragmented, 'nodes_whole', f.nodes_whole,
               'largest_gang', f.largest_gang,
               'fits', json_build_object('1', f.fits_1, '2', f.fits_2, '4', f.fits_4, '8', f.fits_8),
               'domains', f.domains) order by f.gpu_type), '[]')::text
      from odc.fragmentation as f
$$;
