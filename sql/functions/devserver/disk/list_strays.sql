-- odc.list_strays: the cloud's volumes and snapshots that have odc's tag but no row, for operators.
-- Returns    a JSON array as text: {cloud_id, kind, user, disk, tags, first_at, seen_at}
-- Raises     OD013 NotOwner
create or replace function odc.list_strays(p_actor jsonb)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    perform _check_operator(p_actor, 'list cloud resources that belong to no disk');
    return (select coalesce(json_agg(json_build_object(
                       'cloud_id', t.cloud_id, 'kind', t.kind, 'user', t.tags ->> 'gpu-dev-user', 'disk', t.tags ->> 'disk_name', 'tags', t.tags,
                       'first_at', _iso(t.first_at), 'seen_at', _iso(t.seen_at)) order by t.first_at, t.cloud_id), '[]')::text
              from disk_stray as t);
end;
$$;
