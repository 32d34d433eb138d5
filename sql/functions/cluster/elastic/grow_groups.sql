-- odc.grow_groups: decide how many nodes to request, and for which jobs. It plans as if all nodes existed that the groups
-- have requested or could; a job that starts on one of them in this plan, not without them, and is not planned to start
-- before such a node could be ready, needs a new node. Order, limits, licences, bookings and gangs are those of the plan.
-- Stores the sizes to request (elastic_group.wanted), and the jobs (elastic_need).
-- Returns    groups that are to grow, by name, and the size to request
-- Locks      term for key share; the turn; node, node_group, node_free, facts: the possible nodes are removed again
-- Raises     OD020 LeadershipLost
create or replace function odc.grow_groups(p_term bigint, p_now timestamptz)
returns table (group_name text, wanted integer)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_undone constant text := 'ZZ001';
    v_nodes  integer[];
    v_groups text[];
    v_now    bigint[];      -- jobs that start without new nodes
    d        record;
    v_jobs   bigint[];
begin
    perform _hold_term(p_term);
    if not exists (select from elastic_group) or not exists (select from pending as p where p.ready and p.held is null) then
        delete from elastic_need;
        return;
    end if;
    -- Before the turn, so that passes wait only for the other plan.
    select start_jobs into v_now from decide(p_now);
    perform _take_turn(p_now);
    begin
        select * into v_nodes, v_groups from _add_possible_nodes(p_now);
        if v_nodes is not null then
            select start_jobs, start_nodes, alloc_nodes into d from decide(p_now);
        end if;
        raise exception using errcode = v_undone, message = 'the possible nodes are removed';
    exception when sqlstate 'ZZ001' then
        null;
    end;
    delete from elastic_need;
    if v_nodes is null or d.start_jobs is null then
        return;
    end if;

    return query
    with start as (
        select s.job_id, s.ord, sum(s.nodes) over (order by s.ord) - s.nodes as before, s.nodes
          from unnest(d.start_jobs, d.start_nodes) with ordinality as s (job_id, nodes, ord)
    ), placed as (
        select s.job_id, a.node_id, v_groups[array_position(v_nodes, a.node_id)] as group_name
          from start as s
          join unnest(d.alloc_nodes) with ordinality as a (node_id, ord) on a.ord > s.before and a.ord <= s.before + s.nodes
         where a.node_id = any (v_nodes)
    ), needed as (
        select p.job_id, p.node_id, p.group_name
          from placed as p
          join elastic_group as g on g.name = p.group_name
          left join planned as l on l.job_id = p.job_id
         where p.job_id <> all (coalesce(v_now, '{}'))
           and (l.planned_start_at is null or l.planned_start_at > p_now + g.boot)
    ), noted as (
        insert into elastic_need (job_id, group_name)
        select distinct on (n.job_id) n.job_id, n.group_name from needed as n order by n.job_id, n.group_name
    ), counted as (
        select n.group_name, count(distinct n.node_id)::integer as nodes, array_agg(distinct n.job_id order by n.job_id) as jobs
          from needed as n group by n.group_name
    ), grown as (
        update elastic_group as g
           set wanted = least(g.max_nodes, z.total + c.nodes - z.coming), wanted_at = p_now, grown_at = p_now
          from counted as c join _group_sizes(p_now) as z on z.name = c.group_name
         where g.name = c.group_name and z.may_ask and c.nodes > z.coming and z.total < g.max_nodes
        returning g.name, g.wanted, c.jobs
    ), told as (
        insert into event (at, kind, actor, detail)
        select p_now, 'nodes_requested', 'odcd',
               jsonb_build_object('group', w.name, 'size', w.wanted, 'jobs', to_jsonb(w.jobs[:20]))
          from grown as w order by w.name
    )
    select w.name, w.wanted from grown as w order by w.name;
end;
$$;
