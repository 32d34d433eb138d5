-- odc._singleton_verdicts: which singletons have no earlier live job of their user and name any more.
-- Only the first of those that wait with one name can be free: it is in the way of the others.
-- Arguments  p_job_ids  pending jobs, whatever they wait for
create or replace function odc._singleton_verdicts(p_job_ids bigint[])
returns table (job_id bigint, ord integer)
language sql stable as $$
    with mine as materialized (
        select d.job_id, d.ord, d.name_key, p.uid, coalesce(p.array_job_id, p.job_id) as since
          from unnest(p_job_ids) as w (id)
          join odc.dependency as d on d.job_id = w.id and d.state = 'waiting' and d.kind = 'singleton'
          join odc.pending as p on p.job_id = d.job_id
    ), first as materialized (
        select d.name_key, min(coalesce(p.array_job_id, p.job_id)) as since
          from (select distinct name_key from mine) as k
          join odc.dependency as d on d.name_key = k.name_key and d.state = 'waiting' and d.kind = 'singleton'
          join odc.pending as p on p.job_id = d.job_id
         group by d.name_key
    ), blocked as (
        select distinct f.name_key
          from first as f
          join mine as m on m.name_key = f.name_key and m.since = f.since
          join lateral (select p.job_id from odc.pending as p where p.uid = m.uid
                         union all
                        select r.job_id from odc.running as r where r.uid = m.uid) as live on true
          join odc.job as j on j.id = live.job_id
          join odc.job as s on s.id = m.job_id
         where j.name = s.name and coalesce(j.array_job_id, j.id) < m.since
    )
    select m.job_id, m.ord
      from mine as m
      join first as f on f.name_key = m.name_key and f.since = m.since
     where m.name_key not in (select name_key from blocked);
$$;
