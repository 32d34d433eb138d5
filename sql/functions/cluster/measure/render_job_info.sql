-- odc.render_job_info: the lines of odcd_job_info for /metrics, one per live member. There are thousands, so they stay
-- text.
-- Arguments  p_job_ids, p_namespaces  parallel: jobs that have pods, and the namespaces of these
create or replace function odc.render_job_info(p_job_ids bigint[], p_namespaces text[])
returns text
language sql stable as $$
    with member as (
        select r.job_id, r.attempt, a.rank, a.gpus, odc._label(j.user_name) as user_name, odc._label(c.name) as account, odc._label(t.name) as partition, j.kind::text as kind,
               odc._label(n.name) as node, odc._label(p.namespace) as namespace
          from odc.running as r
          join odc.allocation as a on a.job_id = r.job_id and a.state <> 'ended'
          join odc.job as j on j.id = r.job_id
          join odc.account as c on c.id = r.account_id
          join odc.partition as t on t.id = r.partition_id
          join odc.node as n on n.id = a.node_id
          left join unnest(p_job_ids, p_namespaces) as p (job_id, namespace) on p.job_id = r.job_id
    )
    select coalesce(string_agg(
               'odcd_job_info{account="' || m.account || '",gpus="' || m.gpus || '",job_id="' || m.job_id || '",kind="' || m.kind || '",namespace="'
               || coalesce(m.namespace, '') || '",node="' || m.node || '",partition="' || m.partition || '",pod="'
               || case when m.namespace is null then '' else 'odc-' || m.job_id || '-' || m.attempt || '-' || m.rank end
               || '",rank="' || m.rank || '",user="' || m.user_name || E'"} 1.0\n', '' order by m.job_id, m.rank), '')
      from member as m
$$;
