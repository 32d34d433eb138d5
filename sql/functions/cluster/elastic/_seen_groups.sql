-- odc._seen_groups: the groups of a report, in the form of see_groups, and what is wrong with each.
create or replace function odc._seen_groups(p_groups jsonb)
returns table (
    name text, gpu_type text, min_nodes integer, max_nodes integer, desired integer, cooldown interval, idle interval,
    boot interval, features text[], zone text, efa_domain text, instances text[], problem text, failure text, failed_at timestamptz)
language sql stable
begin atomic
    select r.name, r.gpu_type, r.min_nodes, r.max_nodes, r.desired, make_interval(secs => r.cooldown_s),
           make_interval(secs => r.idle_s), make_interval(secs => r.boot_s), coalesce(r.features, '{}'), r.zone, r.efa_domain,
           coalesce(r.instances, '{}'),
           case when r.problem is not null then r.problem
                when t.name is null then format('its tag GpuType="%s" names no GPU type', coalesce(r.gpu_type, ''))
                when r.min_nodes > r.max_nodes
                then format('its minimum %s is above its maximum %s', r.min_nodes, r.max_nodes) end,
           r.failure, r.failed_at
      from jsonb_to_recordset(p_groups) as r (
           name text, gpu_type text, min_nodes integer, max_nodes integer, desired integer, cooldown_s double precision,
           idle_s double precision, boot_s double precision, features text[], zone text, efa_domain text, instances text[],
           problem text, failure text, failed_at timestamptz)
      left join odc.gpu_type as t on t.name = r.gpu_type;
end;
