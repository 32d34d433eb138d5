-- odc._plan_protect: the earliest start of a job that does not fit now, and what each of its nodes has free then.
-- The seam of protection. A running job frees its part when its time limit ends; one that is overdue, in a second.
-- Arguments  p_now         the pass's time
--            p_needs       per node position: may the job use it? (its groups, its lists, its partition)
--            p_domains     per node position: EFA domain; 0 for all when the gang need not stay in one
--            p_*           what is free now per node position; what one member needs, where -1 means all of the node
--            p_placed_*    what this pass has placed so far: node position, amounts, seconds until its limit
-- Returns    planned_at null when there is no such moment; else the moment, the positions chosen (the earliest
--            ones), how many nodes of that domain fit then, and per position whether it is one of those and its
--            amounts free then; fitting: how many nodes fit now
create or replace function odc._plan_protect(
    p_now timestamptz, p_node_ids integer[], p_needs boolean[], p_domains integer[],
    p_gpus integer[], p_cpus integer[], p_mems integer[],
    p_total_gpus integer[], p_total_cpus integer[], p_total_mems integer[],
    p_node_count integer, p_need_gpus integer, p_need_cpus integer, p_need_mem integer,
    p_placed_nodes integer[], p_placed_gpus integer[], p_placed_cpus integer[], p_placed_mems integer[],
    p_placed_limits_s integer[],
    out planned_at timestamptz, out chosen integer[], out fit_count integer, out fits boolean[],
    out then_gpus integer[], out then_cpus integer[], out then_mems integer[], out fitting integer)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_domain integer;
begin
    with n as materialized (
        select u.position::integer as position, u.node_id, u.domain, u.gpus, u.cpus, u.mem,
               case when p_need_gpus < 0 then u.total_gpus else p_need_gpus end as need_gpus,
               case when p_need_cpus < 0 then u.total_cpus else p_need_cpus end as need_cpus,
               case when p_need_mem < 0 then u.total_mem else p_need_mem end as need_mem
          from unnest(p_node_ids, p_needs, p_domains, p_gpus, p_cpus, p_mems,
                      p_total_gpus, p_total_cpus, p_total_mems) with ordinality
               as u (node_id, needed, domain, gpus, cpus, mem, total_gpus, total_cpus, total_mem, position)
         where u.needed
    ), ends as (
        select n.position, greatest(a.ends_at, p_now + interval '1 second') as at, a.gpus, a.cpus, a.mem_mib as mem
          from n join allocation as a on a.node_id = n.node_id
        union all
        select p.position, case when p.limit_s = 2147483647 then 'infinity'
                                else p_now + make_interval(secs => p.limit_s) end, p.gpus, p.cpus, p.mem
          from unnest(p_placed_nodes, p_placed_gpus, p_placed_cpus, p_placed_mems, p_placed_limits_s)
               as p (position, gpus, cpus, mem, limit_s)
          join n on n.position = p.position
    ), steps as materialized (
        select n.position, p_now as at, n.gpus, n.cpus, n.mem from n
        union all
        select e.position, e.at,
               n.gpus + sum(e.gpus) over w, n.cpus + sum(e.cpus) over w, n.mem + sum(e.mem) over w
          from ends as e join n on n.position = e.position
        window w as (partition by e.position order by e.at)
    ), ready as materialized (
        select n.position, n.domain, min(s.at) as at
          from n join steps as s on s.position = n.position
         where s.gpus >= n.need_gpus and s.cpus >= n.need_cpus and s.mem >= n.need_mem
         group by n.position, n.domain
    ), ranked as (
        select r.domain, r.position, r.at,
               row_number() over (partition by r.domain order by r.at, r.position) as rank
          from ready as r
    ), best as (
        select r.domain, r.at from ranked as r
         where r.rank = p_node_count and r.at < 'infinity' order by r.at, r.domain limit 1
    ), at_start as (
        select s.position, s.gpus, s.cpus, s.mem,
               row_number() over (partition by s.position order by s.at desc, s.gpus desc, s.cpus desc, s.mem desc) as last
          from steps as s where s.at <= (select at from best)
    )
    select b.at, b.domain,
           (select array_agg(r.position order by r.position) from ranked as r
             where r.domain = b.domain and r.rank <= p_node_count),
           (select count(*) from ready as r where r.domain = b.domain and r.at <= b.at),
           f.fits, f.gpus, f.cpus, f.mems,
           (select count(*) from ready as r where r.at <= p_now)
      into planned_at, v_domain, chosen, fit_count, fits, then_gpus, then_cpus, then_mems, fitting
      from (select 1) as one
      left join best as b on true
      left join lateral (
           select array_agg(coalesce(r.domain = b.domain and r.at <= b.at, false) order by u.position) as fits,
                  array_agg(coalesce(s.gpus, 0) order by u.position) as gpus,
                  array_agg(coalesce(s.cpus, 0) order by u.position) as cpus,
                  array_agg(coalesce(s.mem, 0) order by u.position) as mems
             from unnest(p_node_ids) with ordinality as u (node_id, position)
             left join ready as r on r.position = u.position
             left join at_start as s on s.position = u.position and s.last = 1) as f on b.at is not null;
end;
$$;
