-- odc.create_step: create a step of a running job and give it a part of the job's allocation.
-- Arguments  p_key    of the request; a repeated request gets the step that the first one created
--            p_wants  {"nodes", "tasks", "tasks_per_node", "cpus_per_task", "gpus_per_task", "gpus_per_node", "gpus", "mem_mib",
--                     "node_list", "exclude", "exact", "overlap", "overcommit"}, all optional; mem_mib: on each node.
--                     In several components of a heterogeneous job: {"overlap", "parts": [as before, and "first_rank",
--                     "node_count": the members of the component]}, in the order of the members
-- Returns    {"outcome": "created" or "known", "attempt", "step", "state", "nodes": [{"rank", "node", "tasks", "cpus", "gpus"}]},
--            {"outcome": "busy"}: other steps use the resources; or {"outcome": "refused", "why": ended, starting, nodes,
--            node_list, processors, gpus, memory, tasks or limit (of a step's tasks, of a job's steps), "allocated"}: nothing was created
-- Locks      term for share; running by job, for update; step
-- Raises     OD020 LeadershipLost
create or replace function odc.create_step(
    p_term bigint, p_job_id bigint, p_key text, p_name text, p_command text, p_wants jsonb, p_now timestamptz)
returns jsonb
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_run     running;
    v_known   step;
    v_overlap boolean := coalesce((p_wants ->> 'overlap')::boolean, false);
    v_most_tasks constant integer := 10000;
    v_most_steps constant integer := 40000;
    v_most_live  constant integer := 1000;
    v_step    integer;
    v_part    jsonb;
    v_place   jsonb;
    v_places  jsonb[] := '{}';
begin
    perform _hold_term(p_term);
    select * into v_run from running as r where r.job_id = p_job_id for update;
    if not found or v_run.intent is not null or v_run.state not in ('RUNNING', 'CONFIGURING') then
        return jsonb_build_object('outcome', 'refused', 'why', 'ended');
    end if;
    select * into v_known from step as s where s.job_id = p_job_id and s.attempt = v_run.attempt and s.key = p_key;
    if found then
        return _step_answer('known', v_known);
    end if;
    if not exists (select from allocation as a where a.job_id = p_job_id and a.state = 'running') then
        return jsonb_build_object('outcome', 'refused', 'why', case
            when exists (select from allocation as a where a.job_id = p_job_id and a.state = 'starting')
            then 'starting' else 'ended' end);
    end if;
    select coalesce(max(s.step) + 1, 0) into v_step from step as s where s.job_id = p_job_id and s.attempt = v_run.attempt;
    if v_step >= v_most_steps then
        return jsonb_build_object('outcome', 'refused', 'why', 'limit');
    end if;
    if (select count(*) from step as s where s.job_id = p_job_id and s.state = 'RUNNING') >= v_most_live then
        return jsonb_build_object('outcome', 'busy');
    end if;

    for v_part in
        select * from jsonb_array_elements(coalesce(nullif(p_wants -> 'parts', 'null'), jsonb_build_array(p_wants)))
    loop
        v_place := _place_step(p_job_id, v_run.attempt, v_part || jsonb_build_object('overlap', v_overlap));
        if v_place ->> 'outcome' <> 'fits' then
            return v_place;
        end if;
        v_places := v_places || (v_place || jsonb_build_object('mem_mib', v_part -> 'mem_mib'));
    end loop;
    if (select sum(t::integer) from unnest(v_places) as p, jsonb_array_elements_text(p -> 'tasks') as t) > v_most_tasks then
        return jsonb_build_object('outcome', 'refused', 'why', 'tasks');
    end if;
    insert into step (job_id, attempt, step, key, name, command, ranks, node_names, tasks, cpus, gpu_masks, mem_mib,
                      holds_cpus, holds_gpus, started_at)
    select p_job_id, v_run.attempt, v_step, p_key, p_name, p_command, array_agg(u.rank order by u.rank),
           array_agg(u.name order by u.rank), array_agg(u.tasks order by u.rank), array_agg(u.cpus order by u.rank),
           array_agg(u.mask order by u.rank),
           case when bool_or(p.place ->> 'mem_mib' is not null)
                then array_agg(coalesce((p.place ->> 'mem_mib')::integer, 0) order by u.rank) end,
           not v_overlap, bool_or((p.place -> 'holds_gpus')::boolean), p_now
      from unnest(v_places) as p (place)
     cross join lateral rows from (
           jsonb_array_elements_text(p.place -> 'ranks'), jsonb_array_elements_text(p.place -> 'nodes'),
           jsonb_array_elements_text(p.place -> 'tasks'), jsonb_array_elements_text(p.place -> 'cpus'),
           jsonb_array_elements_text(p.place -> 'masks')) as t (rank, name, tasks, cpus, mask)
     cross join lateral (select t.rank::integer, t.name, t.tasks::integer, t.cpus::integer, t.mask::bigint)
           as u (rank, name, tasks, cpus, mask)
    returning * into v_known;
    return _step_answer('created', v_known);
end;
$$;
