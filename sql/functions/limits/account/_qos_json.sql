-- odc._qos_json: a QOS as the API returns it.
create or replace function odc._qos_json(p_qos odc.qos)
returns json
language sql stable as $$
    select json_build_object(
        'name', p_qos.name,
        'description', p_qos.description,
        'priority', p_qos.priority,
        'restricted', p_qos.restricted,
        'deny_on_limit', p_qos.deny_on_limit,
        'usage_factor', p_qos.usage_factor::float8,
        'preempts', odc._qos_names(p_qos.preempts),
        'preempt_mode', p_qos.preempt_mode,
        'exempt_s', p_qos.exempt_s,
        'grace_s', p_qos.grace_s,
        'idle_warn_s', p_qos.idle_warn_s,
        'idle_release_s', p_qos.idle_release_s,
        'limits', odc._limits_json('qos', p_qos.id))
$$;
