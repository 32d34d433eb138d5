-- odc.check_books: find contradictions between the hot tables; no rows if there are none.
-- Returns    one sentence per contradiction
create or replace function odc.check_books()
returns setof text
language sql stable as $$
    select format('node %s: %s GPUs, %s CPUs, %s MiB and %s jobs are recorded, but allocations and other use leave %s, %s, %s and %s',
                  n.name, f.gpus, f.cpus, f.mem_mib, f.jobs,
                  g.gpus - a.gpus, g.cpus - a.cpus, g.mem_mib - a.mem_mib, a.jobs)
      from odc.node_free as f
      join odc.node as n on n.id = f.node_id
      join odc.node_group as g on g.id = f.group_id
      left join (select node_id, sum(gpus) as gpus, sum(cpus) as cpus, sum(mem_mib) as mem_mib, count(*) as jobs
                   from odc.allocation group by node_id) as t on t.node_id = f.node_id
     cross join lateral (
           select coalesce(t.gpus, 0) + bit_count(n.foreign_gpu_mask::bit(64)) as gpus,
                  coalesce(t.cpus, 0) + n.foreign_cpus as cpus,
                  coalesce(t.mem_mib, 0) + n.foreign_mem_mib as mem_mib, coalesce(t.jobs, 0) as jobs) as a
     where (f.gpus, f.cpus, f.mem_mib, f.jobs) is distinct from
           (g.gpus - a.gpus, g.cpus - a.cpus, g.mem_mib - a.mem_mib, a.jobs)
    union all
    select format('node %s: GPU mask %s does not match %s free GPUs and the used GPUs %s', n.name, f.gpu_mask::bit(64), f.gpus, a.taken)
      from odc.node_free as f
      join odc.node as n on n.id = f.node_id
      left join (select node_id, bit_or(gpu_mask) as mask, sum(bit_count(gpu_mask::bit(64))) as bits
                   from odc.allocation group by node_id) as t on t.node_id = f.node_id
     cross join lateral (
           select coalesce(t.mask, 0) | n.foreign_gpu_mask as taken,
                  coalesce(t.bits, 0) + bit_count(n.foreign_gpu_mask::bit(64)) as bits) as a
     where f.gpu_mask & a.taken <> 0
        or bit_count(f.gpu_mask::bit(64)) <> f.gpus
        or bit_count(a.taken::bit(64)) <> a.bits
        or bit_count((f.gpu_mask | a.taken)::bit(64)) <> n.gpus
    union all
    select format('allocation of job %s rank %s: mask and GPUs disagree', job_id, rank)
      from odc.allocation where bit_count(gpu_mask::bit(64)) <> gpus
    union all
    select format('job %s is in more than one of pending, running, ended', id)
      from (select job_id as id from odc.pending
            union all select job_id from odc.running
            union all select id from odc.job where state is not null) as places
     group by id having count(*) > 1
    union all
    select format('job %s is in none of pending, running, ended', j.id)
      from odc.job as j
     where j.state is null
       and not exists (select from odc.pending as p where p.job_id = j.id)
       and not exists (select from odc.running as r where r.job_id = j.id)
    union all
    select format('running job %s: needs %s nodes and has %s; counts %s live members, but %s have not ended',
                  r.job_id, r.node_count, a.nodes, r.live_members, a.live)
      from odc.running as r
      join odc.shape as s on s.id = r.shape_id
     -- The components of a heterogeneous job may share nodes.
     cross join lateral (
           select count(distinct (l.node_id, case when s.components is not null
                                                  then odc._component_of(s.components, l.rank + 1) end)) as nodes,
                  count(*) filter (where l.state <> 'ended') as live
             from odc.allocation as l where l.job_id = r.job_id) as a
     where (a.nodes, a.live) is distinct from (r.node_count::bigint, r.live_members::bigint)
    union all
    select format('allocation of job %s without a running job', a.job_id)
      from odc.allocation as a
     where not exists (select from odc.running as r where r.job_id = a.job_id)
    union all
    select format('array %s: %s tasks are counted as running, but %s are running', d.job_id, d.running, r.running)
      from odc.array_job as d
     cross join lateral (select count(*) as running from odc.running where array_job_id = d.job_id) as r
     where d.running <> r.running
    union all
    select format('node %s is quarantined but accepts jobs', n.name)
      from odc.node_quarantine as q
      join odc.node as n on n.id = q.node_id
      join odc.node_free as f on f.node_id = q.node_id
     where q.drained and (n.state = 'UP' or f.up)
    union all
    select format('usage has %s GPU-milliseconds, but the attempts add up to %s', u.ms, a.ms)
      from (select coalesce(sum(total_gpu_ms), 0) as ms from odc.usage) as u
     cross join (select coalesce(sum(gpus * odc._attempt_ms(started_at, ended_at, ended_at)), 0) as ms from odc.attempt) as a
     -- Retention may have deleted attempts; used time stays.
     cross join odc.history_gone as g
     where u.ms <> a.ms + g.gpu_ms
    union all
    select w from odc._wrong_use() as w;
$$;
