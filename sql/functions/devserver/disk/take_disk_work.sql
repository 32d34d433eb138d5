-- odc.take_disk_work: the disk work that is due, longest due first. State that pods may see is recorded before the work
-- is done.
-- Arguments  p_limit  maximum number of rows
-- Returns    kind and id of a row, and the action:
--            volume    create, look, publish, withdraw, detach (by force), delete
--            snapshot  create, look, label, delete; of gpu-dev's: adopt (add odc's tags), save (make one of a volume)
--            storage   create, publish
--            import    list: tags are the names of gpu-dev's tags
--            operation: the call's idempotency token for the cloud; cloud_id: the cloud's own id; volume_cloud_id,
--            snapshot_cloud_id: the source of a snapshot or of a volume; tags: its labels
-- Raises     OD020 LeadershipLost
create or replace function odc.take_disk_work(p_term bigint, p_now timestamptz, p_limit integer default 200)
returns table (kind text, id bigint, verb text, operation text, cloud_id text, volume_cloud_id text, snapshot_cloud_id text, zone text, size_gib integer,
               uid integer, tries integer, tags jsonb)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_detach_after constant interval := '5 minutes';
begin
    perform _hold_term(p_term);
    update disk_volume as v set state = 'published', state_at = p_now where v.state = 'available' and v.due_at <= p_now;
    return query
    select w.kind, w.id, w.verb, w.operation, w.cloud_id, w.volume_cloud_id, w.snapshot_cloud_id, w.zone, w.size_gib, w.uid, w.tries, w.tags
      from (
        select 'volume', v.id,
               case when v.state = 'creating' and v.cloud_id is null then 'create'
                    when v.state = 'creating' then 'look'
                    when v.state = 'published' then 'publish'
                    when v.state = 'releasing' and v.withdrawn_at is null then 'withdraw'
                    when v.state = 'releasing' and v.withdrawn_at < p_now - v_detach_after and v.tries = 0 then 'detach'
                    when v.state = 'releasing' then 'look'
                    when v.state = 'deleting' then 'delete' end,
               v.operation::text, v.cloud_id, null::text, s.cloud_id, v.zone, v.size_gib, d.uid, v.tries,
               jsonb_build_object('gpu-dev-user', d.user_name, 'disk_name', d.name, 'Name', format('odc %s %s', d.user_name, d.name),
                                  'created_at', _iso(v.made_at), 'last_used', _iso(d.used_at)), v.due_at
          from disk_volume as v
          join disk as d on d.id = v.disk_id
          left join disk_snapshot as s on s.id = v.snapshot_id
         -- A volume that has become available since then is returned next time.
         where v.due_at <= p_now and v.state <> 'available'
         union all
        select 'snapshot', s.id,
               case s.state when 'wanted' then case when s.adopted then 'adopt' when s.volume_id is null then 'save' else 'create' end
                            when 'pending' then 'look' when 'deleting' then 'delete' else 'label' end,
               s.operation::text, s.cloud_id, coalesce(v.cloud_id, s.source), null, v.zone, s.size_gib, d.uid, s.tries,
               -- gpu-dev's own tags stay, so that gpu-dev still finds an adopted snapshot.
               jsonb_strip_nulls(case when s.adopted then jsonb_build_object('odc-disk', format('%s/%s', d.user_name, d.name)) else jsonb_build_object(
                   'gpu-dev-user', d.user_name, 'disk_name', d.name, 'SnapshotType', s.kind, 'created_at', _iso(s.asked_at),
                   'disk_size', s.size_gib::text, 'snapshot_content', case when s.contents is not null then format('odc:%s', s.id) end) end || jsonb_build_object(
                   'marked-deleted-at', _iso(d.deleted_at), 'delete-date', to_char(d.purge_at at time zone 'UTC', 'YYYY-MM-DD'))), s.due_at
          from disk_snapshot as s
          join disk as d on d.id = s.disk_id
          left join disk_volume as v on v.id = s.volume_id
         where s.due_at <= p_now
         union all
        select 'storage', t.uid, case when t.cloud_id is null then 'create' else 'publish' end, format('storage-%s', t.uid), t.cloud_id, null, null, null, null::integer,
               t.uid, t.tries, jsonb_build_object('gpu-dev-user', t.user_name), t.due_at
          from shared_storage as t
         where t.due_at <= p_now
         union all
        select 'import', i.id, 'list', i.id::text, null, null, null, null, null, i.uid, i.tries, i.tags, i.due_at
          from disk_import as i
         where i.due_at <= p_now) as w (
           kind, id, verb, operation, cloud_id, volume_cloud_id, snapshot_cloud_id, zone, size_gib, uid, tries, tags, due_at)
     order by w.due_at, w.kind desc, w.id
     limit p_limit;
end;
$$;
