-- odc._freed_nodes: the nodes that a gang takes once a set of jobs has ended: those freed for it first, so that nodes
-- that are already free stay available to other jobs.
-- Arguments  p_set   positions of the jobs to end;  p_count  number of nodes;  p_ends  per job: when it ends by itself
--            the others  as _lacking_nodes returns them
create or replace function odc._freed_nodes(
    p_set integer[], p_count integer, p_ends bigint[], p_nodes integer[], p_domains integer[],
    p_lack_from integer[], p_lack_ats bigint[], p_lack_gpus integer[], p_lack_cpus integer[], p_lack_mems integer[],
    p_on_from integer[], p_on_jobs integer[], p_on_gpus integer[], p_on_cpus integer[], p_on_mems integer[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_fits integer[];
begin
    with fits as (
        select u.i, u.node, u.domain, count(b.job) as freed
          from unnest(p_nodes, p_domains) with ordinality as u (node, domain, i)
          left join lateral (
               select w.job from unnest(p_on_jobs[p_on_from[u.i]:p_on_from[u.i + 1] - 1]) as w (job)
                where w.job = any (p_set)) as b on true
         where not exists (
               select from generate_series(p_lack_from[u.i], p_lack_from[u.i + 1] - 1) as k (l)
                where exists (
                      select from (select coalesce(sum(p_on_gpus[w.o]), 0) as gpus, coalesce(sum(p_on_cpus[w.o]), 0) as cpus,
                                          coalesce(sum(p_on_mems[w.o]), 0) as mems
                                     from generate_series(p_on_from[u.i], p_on_from[u.i + 1] - 1) as w (o)
                                    where p_on_jobs[w.o] = any (p_set) and p_ends[p_on_jobs[w.o]] > p_lack_ats[k.l]) as s
                       where s.gpus < p_lack_gpus[k.l] or s.cpus < p_lack_cpus[k.l] or s.mems < p_lack_mems[k.l]))
         group by u.i, u.node, u.domain
    )
    select array_agg(s.node order by s.i) into v_fits
      from (select f.node, f.i from fits as f
             where f.domain = (select z.domain from fits as z group by z.domain having count(*) >= p_count
                                order by sum(z.freed) desc, z.domain limit 1)
             order by f.freed = 0, f.i limit p_count) as s;
    assert cardinality(v_fits) = p_count, 'victims that do not suffice';
    return v_fits;
end;
$$;
