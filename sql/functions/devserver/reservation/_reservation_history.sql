-- odc._reservation_history: the history of a reservation, oldest first, as JSON [{at, text}].
create or replace function odc._reservation_history(p_job_id bigint)
returns json
language sql stable as $$
    select coalesce(json_agg(json_build_object('at', odc._iso(e.at), 'text', e.text) order by e.id), '[]')
      from (select e.id, e.at,
                   case e.kind
                       when 'submitted' then format('%s requested it', e.actor)
                       when 'started' then format('odc began to start it on %s',
                                                  array_to_string(array(select jsonb_array_elements_text(e.detail -> 'nodes')), ', '))
                       when 'active' then format('it became active and ends at %s', e.detail ->> 'expires_at')
                       when 'box_oom' then format('it ran out of memory%s and was restarted in place',
                                                  case when e.detail ->> 'rank' <> '0' then format(' (rank %s)', e.detail ->> 'rank') else '' end)
                       when 'box_restarted' then format('its container ended and was restarted in place: %s', coalesce(e.detail ->> 'detail', 'it printed nothing'))
                       when 'extended' then format('%s extended it until %s', e.actor, e.detail ->> 'expires_at')
                       when 'disk_ready' then format('its disk "%s" is ready: volume %s in %s%s', e.detail ->> 'name', e.detail ->> 'volume', coalesce(e.detail ->> 'zone', 'its zone'),
                                                     coalesce(', from snapshot ' || (e.detail ->> 'snapshot'), ', empty'))
                       when 'disk_saved' then format('disk "%s" was saved in snapshot %s', e.detail ->> 'name', e.detail ->> 'snapshot')
                       when 'disk_lost' then format('volume %s of disk "%s" disappeared before it was saved', e.detail ->> 'volume', e.detail ->> 'name')
                       when 'shared' then format('%s added the SSH keys of GitHub user %s', e.actor, e.detail ->> 'github_user')
                       when 'jupyter_asked' then format('%s asked to %s Jupyter Lab', e.actor,
                                                        case when e.detail -> 'on' = 'true' then 'start' else 'stop' end)
                       when 'jupyter' then case when e.detail ? 'error' then format('Jupyter Lab failed: %s', e.detail ->> 'error')
                                                when e.detail -> 'running' = 'true' then 'Jupyter Lab was started' else 'Jupyter Lab was stopped' end
                       when 'idle_warned' then format('its user was notified that it had been idle for %s', odc._duration((e.detail ->> 'idle_s')::integer))
                       when 'node_warned' then format('its user was notified: %s%s', e.detail ->> 'text',
                                                      coalesce('; the notice was not delivered: ' || (e.detail ->> 'trouble'), ''))
                       when 'idle_released' then format('it was ended because it had been idle since %s', e.detail ->> 'idle_since')
                       when 'warned' then case when e.detail ->> 'minutes' = '0' then 'its user was notified that its time was over' else format('its user was notified %s minutes before its end%s', e.detail ->> 'minutes',
                                                 coalesce('; part of the notice was not delivered: ' || (e.detail ->> 'trouble'), '')) end
                       when 'cancelled' then format('%s cancelled it', e.actor)
                       when 'requeued' then format('it went back to the queue: %s', coalesce(e.detail ->> 'detail', e.detail ->> 'reason', 'its start failed'))
                       when 'ended' then case e.detail ->> 'state' when 'TIMEOUT' then 'its time was over'
                                              when 'CANCELLED' then 'it ended'
                                              else concat_ws(': ', 'it ended', lower(e.detail ->> 'state'), e.detail ->> 'detail') end
                       when 'held' then format('%s held it', e.actor)
                       when 'released' then format('%s released it', e.actor)
                       when 'updated' then format('%s changed its %s', e.actor,
                                                  (select string_agg(k, ', ' order by k) from jsonb_object_keys(e.detail -> 'new') as k)) end as text
              from odc.event as e where e.job_id = p_job_id) as e
     where e.text is not null
$$;
