-- odc._change_text: an event that changed the plan, as part of a sentence.
-- Arguments  p_own_job_id  the job whose plan it changed; the text does not name it
create or replace function odc._change_text(p_event odc.event, p_own_job_id bigint)
returns text
language sql stable as $$
    select concat_ws(' ',
               case when p_event.job_id = p_own_job_id then 'it' when p_event.job_id is not null then 'job ' || p_event.job_id end,
               case when p_event.kind = 'ended' then format('ended (%s)', p_event.detail ->> 'state')
                    when p_event.kind = 'requeued' then 'went back to the queue'
                    when p_event.kind in ('updated', 'held', 'released', 'submitted', 'extended') then 'was ' || p_event.kind
                    when p_event.kind = 'active' then 'became active'
                    when p_event.kind = 'node_up' then format('node %s came up', n.name)
                    when p_event.kind = 'node_down' then format('node %s went down', n.name)
                    when p_event.kind = 'node_drain' then format('node %s was drained', n.name)
                    when p_event.kind in ('node_created', 'node_changed', 'node_deleted')
                         then format('node %s was %s', n.name, substr(p_event.kind, 6))
                    else replace(p_event.kind, '_', ' ') end,
               coalesce(p_event.detail ->> 'name', p_event.detail ->> 'account', p_event.detail ->> 'qos'),
               case when p_event.actor <> 'odcd' then 'by ' || p_event.actor end)
      from (select 1) as one
      left join odc.node as n on n.id = p_event.node_id
$$;
