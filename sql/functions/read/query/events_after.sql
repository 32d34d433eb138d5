-- odc.events_after: the events after a given one, in the order in which they became final.
-- Ids are assigned before commit, so a low id can appear after a higher one. Rows of transactions below the
-- oldest open one are final: in the order (xid, id) no event can be inserted between them later.
-- Arguments  p_after   the id of the last event seen; 0: from the first
--            p_limit   maximum number of events
--            p_job_id  null: of all jobs; otherwise of this job, or of this array and its tasks
-- Returns    (id, JSON {id, at, kind, actor, job_id, array_job_id, array_task_id, node, detail})
create or replace function odc.events_after(p_after bigint, p_limit integer, p_job_id bigint)
returns table (id bigint, body text)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_below constant xid8 := odc._final_below();
    -- If the event itself is gone from history, the events after it show its position. Some events may
    -- then be returned again, but none is missed.
    v_xid   constant xid8 := case when p_after > 0 then coalesce(
        (select e.xid from event as e where e.id = p_after),
        (select e.xid from event as e where e.id between p_after and least(p_after, 9223372036854774807) + 1000 order by e.xid limit 1),
        (select e.xid from event as e where e.id > p_after order by e.id limit 1),
        v_below) else '0' end;
    v_ids   bigint[];
begin
    if p_job_id is null then
        v_ids := array(
            select e.id from event as e
             where (e.xid, e.id) > (v_xid, p_after) and e.xid < v_below
             order by e.xid, e.id
             limit p_limit);
    else
        v_ids := array(
            select e.id from event as e
             where e.job_id in (select p_job_id union all
                                select j.id from job as j where j.array_job_id = p_job_id)
               and (e.xid, e.id) > (v_xid, p_after) and e.xid < v_below
             order by e.xid, e.id
             limit p_limit);
    end if;
    return query
        select e.id,
               json_build_object(
                   'id', e.id,
                   'at', to_char(e.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                   'kind', e.kind, 'actor', e.actor,
                   'job_id', e.job_id, 'array_job_id', j.array_job_id,
                   -- The last task of an array has the row that the whole array had; an attempt belongs to the task.
                   'array_task_id', case when j.id <> j.array_job_id or e.detail ? 'attempt' then j.array_task_id end,
                   'node', n.name, 'detail', e.detail)::text
          from unnest(v_ids) with ordinality as v (id, ord)
          join event as e on e.id = v.id
          left join job as j on j.id = e.job_id
          left join node as n on n.id = e.node_id
         order by v.ord;
end;
$$;
