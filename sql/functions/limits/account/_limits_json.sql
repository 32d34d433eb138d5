-- odc._limits_json: limits of a QOS, account, association or partition: {per: {what: value}}.
create or replace function odc._limits_json(p_scope text, p_scope_id integer)
returns json
language sql stable as $$
    select coalesce(json_object_agg(p.per, p.whats order by p.per), '{}')
      from (select l.per, json_object_agg(l.what, l.value order by l.what) as whats
              from odc.resource_limit as l
             where l.scope = p_scope and l.scope_id = p_scope_id
             group by l.per) as p
$$;
