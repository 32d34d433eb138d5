-- odc.count_cluster: how much of the cluster is in use, in total and per GPU type, as JSON.
-- Returns    {gpus, gpus_free, gpus_used, nodes, nodes_up, reservations: {active, preparing, queued}, jobs: {running, pending},
--            types: [{gpu_type, total, free, active, queued}]}; gpus, total: of nodes that are up
create or replace function odc.count_cluster(p_now timestamptz)
returns text
language sql stable as $$
    with type as (
        select t.* from json_to_recordset(odc.list_availability(p_now)::json) as t (
               gpu_type text, gpus_per_node integer, nodes integer, nodes_up integer, total integer, free integer, running integer, queued integer)
    ), live as (
        select odc._reservation_status(coalesce(r.state, 'PENDING'), odc._seen_intent(r.job_id, r.intent), true) as status
          from odc.reservation as v
          left join odc.running as r on r.job_id = v.job_id
         where r.job_id is not null or exists (select from odc.pending as p where p.job_id = v.job_id)
    )
    select json_build_object(
               'gpus', coalesce(sum(t.total) filter (where t.gpus_per_node > 0), 0),
               'gpus_free', coalesce(sum(t.free) filter (where t.gpus_per_node > 0), 0),
               'gpus_used', coalesce(sum(t.total - t.free) filter (where t.gpus_per_node > 0), 0),
               'nodes', coalesce(sum(t.nodes), 0), 'nodes_up', coalesce(sum(t.nodes_up), 0),
               'reservations', (select json_build_object('active', count(*) filter (where l.status = 'active'),
                                                         'preparing', count(*) filter (where l.status = 'preparing'),
                                                         'queued', count(*) filter (where l.status = 'queued')) from live as l),
               'jobs', json_build_object('running', (select count(*) from odc.running), 'pending', (select coalesce(sum(greatest(p.open_count, 1)), 0) from odc.pending as p)),
               'types', coalesce(json_agg(json_build_object('gpu_type', t.gpu_type, 'total', t.total, 'free', t.free, 'active', t.running, 'queued', t.queued)
                                          order by t.gpu_type), '[]'))::text
      from type as t
$$;
