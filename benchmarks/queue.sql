-- A cluster and a queue to plan: repeatable, in the schema bench, for benchmarks only.
create schema if not exists bench;

create or replace function bench.make_nodes(p_nodes integer, p_now timestamptz) returns void language sql as $$
    select odc.register_nodes(
        (select term from odc.term),
        (select jsonb_agg(jsonb_build_object(
                    'name', 'n' || lpad(i::text, 4, '0'), 'gpu_type', 'h100', 'gpus', 8, 'cpus', 192,
                    'mem_mib', 2097152, 'efa_domain', 'pg' || i / 64, 'declared', true))
           from generate_series(0, p_nodes - 1) as i),
        true, p_now);
$$;

-- Shapes: one node with 1 to 8 GPUs, gangs of 2 to 16 whole nodes.
create or replace function bench.shape(p_nodes integer, p_gpus integer) returns integer language plpgsql as $$
declare
    v_id integer;
begin
    select id into v_id from odc.shape
     where node_count = p_nodes and gpus_per_node = p_gpus and gpu_type = 'h100' and partition_ids = '{1}';
    if v_id is null then
        insert into odc.shape (partition_ids, node_count, gpus_per_node, gpu_type, cpus_per_node,
                               mem_per_node_mib, exclusive)
        values ('{1}', p_nodes, p_gpus, 'h100', p_gpus * 16, p_gpus * 100000, false)
        returning id into v_id;
    end if;
    return v_id;
end $$;

-- Running jobs until some p_percent of the GPUs are taken; their limits end within a day.
create or replace function bench.make_running(p_percent integer, p_now timestamptz) returns void language plpgsql as $$
declare
    n record;  f integer;  g integer;  j bigint;  m bigint;  v_shape integer;  v_ends timestamptz;
begin
    perform setseed(0.5);
    for n in select id from odc.node order by id loop
        f := 8;
        while f > 0 and random() * 100 < p_percent loop
            g := least(f, (array[1, 2, 2, 4, 4, 4, 8])[1 + floor(random() * 7)::integer]);
            j := nextval('odc.job_id_seq');
            m := ((1::bigint << g) - 1) << (8 - f);
            v_ends := p_now + (60 + random() * 86400) * interval '1 second';
            v_shape := bench.shape(1, g);
            insert into odc.job (id, name, user_name, uid, gid, account_id, qos_id, partition_ids, shape_id,
                                 submitted_at, time_limit_s, requeue, work_dir, umask, script_digest, environment_digest)
            values (j, 'run', 'ann', 1001, 1001, 1, 1, '{1}', v_shape, p_now, 86400, true, '/tmp', 18, '', '');
            insert into odc.running (job_id, attempt, state, shape_id, partition_id, uid, account_id, qos_id, nice,
                                     queued_at, started_at, time_limit_s, ends_at, sent_ends_at, node_count, live_members)
            values (j, 1, 'RUNNING', v_shape, 1, 1001, 1, 1, 0, p_now, p_now, 86400, v_ends, v_ends, 1, 1);
            insert into odc.allocation (job_id, rank, node_id, gpu_mask, gpus, cpus, mem_mib, ends_at, state)
            values (j, 0, n.id, m, g, g * 16, g * 100000, v_ends, 'running');
            update odc.node_free
               set gpu_mask = gpu_mask - m, gpus = gpus - g, cpus = cpus - g * 16, mem_mib = mem_mib - g * 100000,
                   jobs = jobs + 1
             where node_id = n.id;
            f := f - g;
        end loop;
    end loop;
    perform odc._repair_use();
end $$;

-- Pending jobs: p_gangs percent gangs of 2 to 16 nodes, the others 1 to 8 GPUs of one node.
create or replace function bench.make_pending(p_jobs integer, p_gangs integer, p_now timestamptz)
returns void language plpgsql as $$
begin
    perform setseed(0.25);
    with wanted as materialized (
        select nextval('odc.job_id_seq') as id, i, gang, limit_s,
               case when gang then (array[2, 2, 4, 4, 8, 16])[1 + floor(a * 6)::integer] else 1 end as nodes,
               case when gang then 8 else (array[1, 1, 1, 1, 2, 2, 2, 4, 4, 8, 8, 3, 6, 5])[1 + floor(a * 14)::integer] end
                   as gpus
          from (select i, random() * 100 < p_gangs as gang, random() as a,
                       (array[600, 1800, 3600, 3600, 14400, 14400, 43200, 86400])[1 + floor(random() * 8)::integer]
                           as limit_s
                  from generate_series(1, p_jobs) as i) as x
    ), shape as materialized (
        select nodes, gpus, bench.shape(nodes, gpus) as id from (select distinct nodes, gpus from wanted) as d
    ), job as (
        insert into odc.job (id, name, user_name, uid, gid, account_id, qos_id, partition_ids, shape_id,
                             submitted_at, time_limit_s, requeue, work_dir, umask, script_digest, environment_digest)
        select w.id, 'wait', 'ann', 1001, 1001, 1, 1, '{1}', s.id, p_now - interval '1 day' + w.i * interval '1 second',
               w.limit_s, true, '/tmp', 18, '', ''
          from wanted as w join shape as s using (nodes, gpus)
    )
    insert into odc.pending (job_id, shape_id, uid, account_id, qos_id, nice, queued_at, time_limit_s)
    select w.id, s.id, 1001, 1, 1, 0, p_now - interval '1 day' + w.i * interval '1 second', w.limit_s
      from wanted as w join shape as s using (nodes, gpus);
end $$;

-- Pending jobs of p_users users, few busy ones with most of them; each has three habits of shape and time limit.
-- Only the hot table: decide reads no other.
create or replace function bench.make_habits(p_jobs integer, p_users integer, p_now timestamptz)
returns void language plpgsql as $$
begin
    perform setseed(0.75);
    create temp table habit on commit drop as
    select u, h, case when a < 0.15 then (array[2, 2, 4, 4, 8, 16])[1 + floor(b * 6)::integer] else 1 end as nodes,
           case when a < 0.15 then 8 else (array[1, 1, 1, 1, 2, 2, 2, 4, 4, 8, 8, 3, 6, 5])[1 + floor(b * 14)::integer] end as gpus,
           (array[600, 1800, 3600, 3600, 14400, 14400, 43200, 86400])[1 + floor(c * 8)::integer] as limit_s
      from (select u, h, random() as a, random() as b, random() as c
              from generate_series(1, p_users) as u, generate_series(0, 2) as h) as x;
    insert into odc.pending (job_id, shape_id, uid, account_id, qos_id, nice, queued_at, time_limit_s)
    select nextval('odc.job_id_seq'), bench.shape(h.nodes, h.gpus), 1000 + h.u, 1, 1, 0,
           p_now - interval '1 day' * (1 - w.i::float8 / p_jobs), h.limit_s
      from (select i, 1 + floor(random() ^ 2 * p_users)::integer as u, floor(random() * 3)::integer as h
              from generate_series(1, p_jobs) as i) as w
      join habit as h on h.u = w.u and h.h = w.h;
end $$;

-- Running jobs of one GPU on every GPU, of 50 users and a few limits; they started within the last day and end within the
-- next one. Set based: 80,000 jobs take seconds.
create or replace function bench.make_full(p_now timestamptz) returns void language sql as $$
    select setseed(0.5);
    with place as materialized (
        select nextval('odc.job_id_seq') as id, n.id as node_id, g, 1001 + floor(random() * 50)::integer as uid,
               p_now - random() * interval '1 day' as started_at, p_now + (60 + random() * 86400) * interval '1 second' as ends_at,
               bench.shape(1, 1) as shape_id
          from odc.node as n cross join lateral generate_series(0, n.gpus - 1) as g
    ), job as (
        insert into odc.job (id, name, user_name, uid, gid, account_id, qos_id, partition_ids, shape_id,
                             submitted_at, time_limit_s, requeue, work_dir, umask, script_digest, environment_digest)
        select id, 'run', 'user' || uid, uid, uid, 1, 1, '{1}', shape_id, started_at, 172800, true, '/tmp', 18, '', ''
          from place
    ), run as (
        insert into odc.running (job_id, attempt, state, shape_id, partition_id, uid, account_id, qos_id, nice, queued_at,
                                 eligible_at, started_at, running_at, time_limit_s, ends_at, sent_ends_at, node_count,
                                 live_members)
        select id, 1, 'RUNNING', shape_id, 1, uid, 1, 1, 0, started_at, started_at, started_at, started_at, 172800, ends_at,
               ends_at, 1, 1
          from place
    ), held as (
        insert into odc.allocation (job_id, rank, node_id, gpu_mask, gpus, cpus, mem_mib, ends_at, state)
        select id, 0, node_id, 1::bigint << g, 1, 16, 100000, ends_at, 'running' from place
    )
    update odc.node_free set gpu_mask = 0, gpus = 0, cpus = cpus - 128, mem_mib = mem_mib - 800000, jobs = 8;
    select odc._repair_use();
$$;
