-- odc._depend_on_leaders: name heterogeneous jobs where dependencies name one of their components: the components of a job end
-- together, so a dependency on one of them is a dependency on the job.
-- Rows are found by index: see _singleton_verdicts.
-- Arguments  p_jobs  each has a "dependency" {any, terms: [{kind, target_id, target_task}]}
-- Returns    the jobs in the same order; most are unchanged
create or replace function odc._depend_on_leaders(p_jobs jsonb[])
returns jsonb[]
language sql stable set enable_seqscan = off as $$
    with leader as materialized (
        select w.target_id, l.leader
          from (select distinct (t.term ->> 'target_id')::bigint as target_id
                  from unnest(p_jobs) as u (job)
                 cross join jsonb_array_elements(nullif(u.job -> 'dependency' -> 'terms', 'null')) as t (term)
                 where t.term ->> 'target_id' is not null and t.term ->> 'target_task' is null) as w
          left join lateral (select true as known from odc.job as j where j.id = w.target_id offset 0) as own on true
         cross join lateral (select odc._leader_of(w.target_id) as leader offset 0) as l
         where own.known is null and l.leader is not null
    ), named as (
        select jsonb_object_agg(target_id, leader) as leaders from leader
    )
    -- Found by key: a join would compare each term with each component.
    select case when d.leaders is null then p_jobs
                else array(
                    select coalesce((
                               select jsonb_set(u.job, '{dependency,terms}', jsonb_agg(
                                          case when d.leaders ? (t.term ->> 'target_id')
                                               then jsonb_set(t.term, '{target_id}', d.leaders -> (t.term ->> 'target_id'))
                                               else t.term end order by t.n))
                                 from jsonb_array_elements(nullif(u.job -> 'dependency' -> 'terms', 'null'))
                                      with ordinality as t (term, n)
                               having bool_or(d.leaders ? (t.term ->> 'target_id'))), u.job)
                      from unnest(p_jobs) with ordinality as u (job, n)
                     order by u.n) end
      from named as d
$$;
