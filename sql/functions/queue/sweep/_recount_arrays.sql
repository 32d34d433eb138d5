-- odc._recount_arrays: the part of _repair_arrays that recounts the running tasks of live arrays.
-- Arguments  as _repair_arrays
-- Returns    sentences: one per corrected row; live: the arrays that it checked
-- Locks      the caller holds the turn; array_job rows that differ
-- enable_nestloop: see _repair_nodes.
create or replace function odc._recount_arrays(p_now timestamptz, p_most integer, out sentences text[], out live bigint[])
language plpgsql volatile set search_path = odc, pg_temp set enable_nestloop = off as $$
begin
    with every as (
        select a.id, count(*) filter (where a.runs)::integer as n, 1 + count(*) over () / p_most as parts
          from (select r.array_job_id as id, true as runs from running as r where r.array_job_id is not null
                 union all
                select p.array_job_id, false from pending as p where p.array_job_id is not null) as a
         group by a.id
    ), live as materialized (
        select e.id, e.n from every as e
         where mod(e.id, e.parts) = mod(floor(extract(epoch from p_now) / 60)::bigint, e.parts)
    ), wrong as materialized (
        select l.id, l.n, d.running as was
          from live as l
          join array_job as d on d.job_id = l.id and d.job_id = any (array(select id from live))
         where d.running <> l.n
    ), corrected as (
        update array_job as d set running = w.n
          from wrong as w
         where d.job_id = w.id and d.job_id = any (array(select id from wrong))
    )
    select array(select format('array %s: %s tasks were counted as running; corrected to %s', w.id, w.was, w.n)
                   from wrong as w order by w.id),
           array(select l.id from live as l)
      into sentences, live;
end;
$$;
