-- odc._tell_gpu_time: GPU time of ended attempts as counted, plus that of running ones until now. A reported total never
-- decreases: if an attempt ended some seconds before odc learned of it, these seconds are reported too early, but not
-- twice.
-- Locks      tally rows, in the order of their keys
create or replace function odc._tell_gpu_time(p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    with held as (
        -- Under the labels that count it when it ends.
        select r.account_id, j.user_name, n.gpu_type, sum(a.gpus * _attempt_ms(r.started_at, r.exited_at, p_now)) as ms
          from running as r
          join job as j on j.id = r.job_id
          join allocation as a on a.job_id = r.job_id
          join node as n on n.id = a.node_id
         where a.gpus > 0
         group by r.account_id, j.user_name, n.gpu_type
    ), live as (
        select array[h.user_name, c.name, h.gpu_type] as labels, sum(h.ms)::bigint as ms
          from held as h join account as c on c.id = h.account_id
         group by 1
    ), total as (
        select coalesce(l.labels, t.labels) as labels, coalesce(l.ms, 0) + coalesce(t.value, 0) as ms
          from live as l
          full join (select * from tally where metric = 'odcd_gpu_seconds_total') as t on t.labels = l.labels
         where t.told is null or t.told < coalesce(l.ms, 0) + coalesce(t.value, 0)
    )
    insert into tally as t (metric, labels, told)
    select 'odcd_gpu_seconds_total', o.labels, o.ms from total as o
     where array_position(o.labels, null) is null
     order by o.labels
        on conflict (metric, labels) do update set told = excluded.told;
end;
$$;
