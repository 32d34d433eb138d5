-- odc._forgettable: those of the given jobs that ended before a moment and that nothing live needs: no job waits for them or
-- for their array, no task of their array is live or ended later, they have no disk volume left, their GPU usage is
-- collected, and they were not restored for reading.
-- Arguments  p_ids     the ids to check
--            p_before  the moment
create or replace function odc._forgettable(p_ids bigint[], p_before timestamptz, p_now timestamptz)
returns setof bigint
language sql stable as $$
    with old as materialized (
        select j.id, j.array_job_id
          from unnest(p_ids) as u (id)
          join odc.job as j on j.id = u.id
         where j.state is not null and j.ended_at < p_before
           and not exists (select from odc.pending as p where p.job_id = j.id)
           and not exists (select from odc.running as r where r.job_id = j.id)
           and not exists (select from odc.disk_volume as v where v.job_id = j.id)
           and not exists (select from odc.gpu_use as g where g.job_id = j.id and g.stored_at is null)
    ), busy as materialized (
        select a.id
          from (select distinct o.array_job_id as id from old as o where o.array_job_id is not null) as a
         where exists (select from odc.job as t
                        where t.array_job_id = a.id and (t.state is null or t.ended_at >= p_before))
    ), needed as materialized (
        select d.target_id as id from odc.dependency as d where d.target_id is not null
    ), restored as materialized (
        select x.low, x.high from odc.history_export as x where x.kind = 'jobs' and x.restored_until > p_now
    )
    select o.id
      from old as o
     where not exists (select from busy as b where b.id = o.array_job_id)
       and not exists (select from needed as n where n.id in (o.id, o.array_job_id))
       and not exists (select from restored as r where o.id >= r.low and o.id < r.high)
     order by o.id
$$;
