-- The replay of a site: its settings and jobs are loaded, then each moment is one round trip. Created in the replay's own
-- database, beside the schema odc.
create schema simulate;

-- simulate.clear: remove the settings of a new installation.
create function simulate.clear()
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    truncate gpu_type, node, policy, partition, partition_node, account, qos, association, resource_limit, priority_weight,
             priority_setting, account_setting, licence, usage, shape, booking, booking_node cascade;
end;
$$;

-- simulate.load: insert rows, given as JSON, into a table of odc. Columns that this version of odc does not have are left out.
create function simulate.load(p_table text, p_rows jsonb)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_columns text;
begin
    select string_agg(quote_ident(a.attname), ', ' order by a.attnum) into v_columns
      from pg_attribute as a
     where a.attrelid = ('odc.' || quote_ident(p_table))::regclass and a.attnum > 0 and not a.attisdropped
       and p_rows -> 0 ? a.attname;
    if v_columns is not null then
        execute format('insert into odc.%I (%s) overriding system value select %s from jsonb_populate_recordset(null::odc.%I, $1)',
                       p_table, v_columns, v_columns, p_table) using p_rows;
    end if;
end;
$$;

-- simulate.ready: finish loading: nodes are grouped, and new ids lie above the loaded ones.
create function simulate.ready(p_max_job_id bigint)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform setval('job_id_seq', greatest(p_max_job_id, 1));
    perform setval('shape_id_seq', coalesce((select max(id) from shape), 1));
    perform _regroup_nodes();
    perform _raise_facts();
end;
$$;

-- simulate.never_fits: shapes that no nodes of the replay could ever run, and why.
create function simulate.never_fits()
returns table (shape_id integer, message text)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_shape shape;
    v_nodes record;
begin
    for v_shape in select * from shape as s where s.booking_id is null order by s.id loop
        -- The amounts of a heterogeneous job's shape are those of no node.
        continue when v_shape.components is not null;
        begin
            select array_agg(n.gpu_type) as types, array_agg(n.gpus) as gpus, array_agg(n.cpus) as cpus, array_agg(n.mem_mib) as mems,
                   array_agg(n.partition_id) as partition_ids, array_agg(n.domain) as domains, array_agg(n.node_count) as counts
              into v_nodes
              from _possible_nodes(v_shape.partition_ids, v_shape.gpu_type, v_shape.constraint_expr, _listed_nodes(v_shape),
                                   v_shape.exclude_nodes, v_shape.tmp_per_node_mib) as n;
            if v_nodes.gpus is null then
                raise exception using errcode = 'OD008', message = 'no node has the type, features or names that it requests';
            end if;
            perform _check_fits(v_shape, v_nodes.partition_ids, v_nodes.types, v_nodes.gpus, v_nodes.cpus, v_nodes.mems,
                                v_nodes.domains, v_nodes.counts);
        exception when others then
            if sqlstate not like 'OD%' then
                raise;
            end if;
            shape_id := v_shape.id;
            message := sqlerrm;
            return next;
        end;
    end loop;
end;
$$;

-- simulate.pinned_shape: the shape with these nodes as the only ones that may run it.
create function simulate.pinned_shape(p_shape_id integer, p_nodes text[])
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_shape shape;
begin
    select * into strict v_shape from shape where id = p_shape_id;
    v_shape.node_list := p_nodes;
    v_shape.node_count_max := null;
    v_shape.exclude_nodes := null;
    return _shape_id(v_shape);
end;
$$;

-- simulate.end_jobs: the members of running jobs exit now.
-- Arguments  p_requeue  of these, jobs that then return to the queue
create function simulate.end_jobs(p_now timestamptz, p_ids bigint[], p_requeue bigint[])
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    if p_requeue <> '{}' then
        perform requeue_jobs('{"user": "root", "uid": 0, "operator": true}', jsonb_build_object(
            'ids', (select jsonb_agg(jsonb_build_object('job_id', id, 'tasks', null)) from unnest(p_requeue) as id)), p_now);
        update running as r set stop_sent_at = p_now where r.job_id = any (p_requeue);
    end if;
    perform record_facts(
                0, array_agg(f.job_id), array_agg(f.attempt), array_agg(f.rank), array_agg(f.kind), array_agg(p_now),
                array_agg(0), array_agg(null::integer), array_agg(null::text), array_agg(null::text), p_now)
       from (select a.job_id, r.attempt, a.rank, 'exited' as kind
               from allocation as a
               join running as r on r.job_id = a.job_id
              where a.job_id = any (p_ids)
              union all
             select r.job_id, r.attempt, 0, 'started' from running as r where r.job_id = any (p_ids)) as f
     having count(*) > 0;
end;
$$;

-- simulate.submit: put jobs into the queue as they were submitted, under their own ids.
-- Arguments  parallel arrays, with the values that odc found when the job was submitted
create function simulate.submit(
    p_now timestamptz, p_jobs jsonb[], p_heads jsonb[], p_ids bigint[], p_shapes integer[], p_accounts integer[], p_qos integer[],
    p_limits_s integer[], p_digest text)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _set_now(p_now);
    perform _take_turn(p_now);
    perform _write_jobs(p_heads, p_jobs, array(select n - 1 from generate_series(1, cardinality(p_ids)) as n), p_ids, p_shapes,
                        p_accounts, p_qos, p_limits_s, array[p_digest], array['#!/bin/sh'], p_now);
    perform _write_dependencies(p_ids, p_jobs, p_now);
end;
$$;

-- simulate.run_passes: passes until nothing more can start now.
-- Returns    the attempts that start, with the array and number of a task; victims: jobs that must end for others
create function simulate.run_passes(
    p_now timestamptz, out ids bigint[], out attempts integer[], out arrays bigint[], out tasks integer[], out nodes text[],
    out victims bigint[], out next_at timestamptz, out pass_ms real[])
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_pass record;
    v_more boolean := true;
begin
    ids := '{}';
    pass_ms := '{}';
    victims := '{}';
    for v_try in 1..50 loop
        exit when not v_more;
        select * into v_pass from plan_pass(0, p_now);
        ids := ids || v_pass.started;
        pass_ms := pass_ms || v_pass.took_ms;
        next_at := v_pass.next_at;
        v_more := v_pass.more;
        -- Victims exit later: until then, another pass changes nothing.
        victims := victims || array(select s.job_id from take_stops(0, p_now) as s where s.intent = 'preempt');
        exit when victims <> '{}';
    end loop;
    select array_agg(r.attempt order by s.n), array_agg(j.array_job_id order by s.n), array_agg(j.array_task_id order by s.n),
           array_agg((select string_agg(n.name, ' ' order by a.rank)
                        from allocation as a join node as n on n.id = a.node_id where a.job_id = s.id) order by s.n)
      into attempts, arrays, tasks, nodes
      from unnest(ids) with ordinality as s (id, n)
      join running as r on r.job_id = s.id
      join job as j on j.id = s.id;
end;
$$;
