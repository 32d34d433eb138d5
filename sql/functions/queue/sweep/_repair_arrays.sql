-- odc._repair_arrays: recount the running tasks of live arrays, and how many of their tasks may start. Of more than
-- p_most arrays it checks a part, the next one in the next minute, because others wait for the turn.
-- Returns    one sentence per corrected row
-- Locks      the caller holds the turn; array_job and pending rows that differ
create or replace function odc._repair_arrays(p_now timestamptz, p_most integer default 10000)
returns text[]
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_told  text[];
    v_live  bigint[];
    v_jobs  bigint[];
    v_opens integer[];
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
        select l.id, l.n, d.running as was from live as l join array_job as d on d.job_id = l.id where d.running <> l.n
    ), corrected as (
        update array_job as d set running = w.n from wrong as w where d.job_id = w.id
    )
    select array(select format('array %s: %s tasks were counted as running; corrected to %s', w.id, w.was, w.n)
                   from wrong as w order by w.id),
           array(select l.id from live as l)
      into v_told, v_live;
    select array_agg(p.job_id order by p.job_id), array_agg(p.open_count order by p.job_id)
      into v_jobs, v_opens
      from pending as p where p.array_job_id = any (v_live);
    perform _refresh_open_counts(v_live);
    return v_told || array(
        select format('job %s: %s tasks could start; corrected to %s', p.job_id, o.was, p.open_count)
          from unnest(v_jobs, v_opens) as o (job_id, was)
          join pending as p on p.job_id = o.job_id
         where p.open_count <> o.was
         order by p.job_id);
end;
$$;
