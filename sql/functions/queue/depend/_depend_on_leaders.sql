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
    )
    select case when not exists (select from leader) then p_jobs
                else array(
                    select coalesce(changed.job, u.job)
                      from unnest(p_jobs) with ordinality as u (job, n)
                      left join lateral (
                           select jsonb_set(u.job, '{dependency,terms}', jsonb_agg(
                                      case when l.leader is null then t.term
                                           else t.term || jsonb_build_object('target_id', l.leader) end order by t.n)) as job
                             from jsonb_array_elements(nullif(u.job -> 'dependency' -> 'terms', 'null')) with ordinality as t (term, n)
                             left join leader as l on l.target_id = (t.term ->> 'target_id')::bigint
                           having bool_or(l.leader is not null)) as changed on true
                     order by u.n) end
$$;
