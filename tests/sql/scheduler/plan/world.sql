-- Writes single rows of the hot tables for tests of the planner, as submit and apply_plan would.
update odc.partition set policy = 'fifo';
create or replace function odc_test_shape(
    n integer, g integer, c integer, m integer, t text, x boolean, l text[], e text[],
    n_max integer default null, sw integer default null, sw_s integer default null)
returns integer language sql as $$
    with old as (
        select id from odc.shape
         where node_count = n and gpus_per_node = g and cpus_per_node = c and mem_per_node_mib = m
           and gpu_type is not distinct from t and exclusive = x
           and node_list is not distinct from l and exclude_nodes is not distinct from e
           and node_count_max is not distinct from n_max and switches is not distinct from sw
           and switches_wait_s is not distinct from sw_s
    ), new as (
        insert into odc.shape (partition_ids, node_count, gpus_per_node, gpu_type, cpus_per_node,
                               mem_per_node_mib, exclusive, node_list, exclude_nodes,
                               node_count_max, switches, switches_wait_s)
        select '{1}', n, g, t, c, m, x, l, e, n_max, sw, sw_s where not exists (select from old) returning id
    )
    select id from old union all select id from new
$$;

create or replace function odc_test_job(p_shape_id integer, p_at timestamptz, p_limit_s integer)
returns bigint language sql as $$
    insert into odc.job (id, name, user_name, uid, gid, account_id, qos_id, partition_ids, shape_id,
                         submitted_at, time_limit_s, requeue, work_dir, umask, script_digest,
                         environment_digest)
    values (nextval('odc.job_id_seq'), 'test', 'ann', 1001, 1001, 1, 1, '{1}', p_shape_id,
            p_at, p_limit_s, true, '/', 0, '', '')
    returning id
$$;

create or replace function odc_test_queue(
    p_shape_id integer, p_at timestamptz, p_limit_s integer, p_nice integer)
returns bigint language sql as $$
    insert into odc.pending (job_id, shape_id, uid, account_id, qos_id, nice, queued_at, time_limit_s)
    values (odc_test_job(p_shape_id, p_at, p_limit_s), p_shape_id, 1001, 1, 1, p_nice, p_at, p_limit_s)
    returning job_id
$$;

create or replace function odc_test_hold(
    p_node text, p_gpus integer, p_cpus integer, p_mem integer, p_ends_at timestamptz, p_at timestamptz)
returns void language plpgsql as $$
declare
    v_shape integer := odc_test_shape(1, p_gpus, p_cpus, p_mem, null, false, null, null);
    v_job   bigint := odc_test_job(v_shape, p_at, 60);
    v_node  integer;
    v_free  bigint;
    v_mask  bigint := 0;
begin
    select n.id, f.gpu_mask into v_node, v_free
      from odc.node as n join odc.node_free as f on f.node_id = n.id where n.name = p_node;
    for i in 1..p_gpus loop
        v_mask := v_mask | (v_free & -v_free);
        v_free := v_free & (v_free - 1);
    end loop;
    insert into odc.running (job_id, attempt, state, shape_id, partition_id, uid, account_id, qos_id, nice,
                             queued_at, started_at, time_limit_s, ends_at, node_count, live_members)
    values (v_job, 1, 'RUNNING', v_shape, 1, 1001, 1, 1, 0, p_at, p_at, 60, p_ends_at, 1, 1);
    insert into odc.allocation (job_id, rank, node_id, gpu_mask, gpus, cpus, mem_mib, ends_at, state)
    values (v_job, 0, v_node, v_mask, p_gpus, p_cpus, p_mem, p_ends_at, 'running');
    update odc.node_free
       set gpu_mask = v_free, gpus = gpus - p_gpus, cpus = cpus - p_cpus, mem_mib = mem_mib - p_mem,
           jobs = jobs + 1
     where node_id = v_node;
    perform odc._repair_use();
end
$$;

-- A running job of a QOS: so much of each of these nodes.
create or replace function odc_test_run(
    p_nodes text[], p_gpus integer, p_cpus integer, p_qos text, p_at timestamptz, p_ends_at timestamptz)
returns bigint language plpgsql as $$
declare
    v_count constant integer := cardinality(p_nodes);
    v_shape integer := odc_test_shape(v_count, p_gpus, p_cpus, 0, null, false, null, null);
    v_job   bigint := odc_test_job(v_shape, p_at, 60);
    v_qos   constant integer := (select id from odc.qos where name = p_qos);
    v_node  record;
    v_free  bigint;
begin
    update odc.job set qos_id = v_qos where id = v_job;
    insert into odc.running (job_id, attempt, state, shape_id, partition_id, uid, account_id, qos_id, nice,
                             queued_at, started_at, running_at, time_limit_s, ends_at, node_count, live_members)
    values (v_job, 1, 'RUNNING', v_shape, 1, 1001, 1, v_qos, 0, p_at, p_at, p_at, 60, p_ends_at, v_count, v_count);
    for v_node in
        select n.id, f.gpu_mask, m.rank - 1 as rank
          from unnest(p_nodes) with ordinality as m (name, rank)
          join odc.node as n on n.name = m.name join odc.node_free as f on f.node_id = n.id
    loop
        v_free := v_node.gpu_mask;
        for i in 1..p_gpus loop
            v_free := v_free & (v_free - 1);
        end loop;
        insert into odc.allocation (job_id, rank, node_id, gpu_mask, gpus, cpus, mem_mib, ends_at, state)
        values (v_job, v_node.rank, v_node.id, v_node.gpu_mask - v_free, p_gpus, p_cpus, 0, p_ends_at, 'running');
        update odc.node_free set gpu_mask = v_free, gpus = gpus - p_gpus, cpus = cpus - p_cpus, jobs = jobs + 1
         where node_id = v_node.id;
    end loop;
    perform odc._repair_use();
    return v_job;
end
$$;

create or replace function odc_test_ask(p_shape_id integer, p_at timestamptz, p_limit_s integer, p_qos text)
returns bigint language sql as $$
    insert into odc.pending (job_id, shape_id, uid, account_id, qos_id, nice, queued_at, time_limit_s)
    select odc_test_job(p_shape_id, p_at, p_limit_s), p_shape_id, 1001, 1, q.id, 0, p_at, p_limit_s
      from odc.qos as q where q.name = p_qos
    returning job_id
$$;
