-- odc._qos_names: names of QOS, sorted, as a JSON array; null if p_ids is null. Deleted ones are left out.
create or replace function odc._qos_names(p_ids integer[])
returns json
language sql stable as $$
    select case when p_ids is not null then (
        select coalesce(json_agg(q.name order by u.n), '[]')
          from unnest(p_ids) with ordinality as u (id, n) join odc.qos as q on q.id = u.id and q.deleted_at is null) end
$$;
