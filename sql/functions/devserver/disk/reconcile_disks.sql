-- odc.reconcile_disks: compare the rows with a complete listing of the cloud. A missing volume or snapshot is checked
-- by its id, because only that can confirm that it is gone. Operators see what is listed but unknown; if it could be
-- newer data of a disk, that disk waits for an operator. An empty listing where there should be something is not trusted.
-- Arguments  p_volumes, p_snapshots  {"id", "operation", "tags"} of all that have this server's tag; operation is the
--                                    row's, or null
--            p_listed_at             when the listing began: younger objects may be missing in it
-- Returns    the number of unknown volumes and snapshots; null: the listing was not trusted
-- Locks      term for share; the turn; disk, disk_snapshot, disk_stray, tally, pending
-- Raises     OD020 LeadershipLost
create or replace function odc.reconcile_disks(
    p_term bigint, p_volumes jsonb, p_snapshots jsonb, p_listed_at timestamptz, p_now timestamptz)
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_volumes   text[] := array(select v ->> 'id' from jsonb_array_elements(p_volumes) as v);
    v_snapshots text[] := array(select s ->> 'id' from jsonb_array_elements(p_snapshots) as s);
    v_troubled  bigint[];
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    if v_volumes = '{}' and exists (select from disk_volume where state in ('published', 'releasing', 'snapshotting') and state_at < p_listed_at)
       or v_snapshots = '{}' and exists (select from disk_snapshot where state = 'completed' and completed_at < p_listed_at) then
        return null;
    end if;
    update disk_snapshot as s set trouble = 'the cloud does not list it'
     where s.state = 'completed' and s.completed_at < p_listed_at and s.cloud_id <> all (v_snapshots);
    insert into disk_stray as t (cloud_id, kind, tags, first_at, seen_at)
    select u.id, u.kind, u.tags, p_now, p_now
      from (select v ->> 'id' as id, 'volume' as kind, v -> 'tags' as tags, v ->> 'operation' as operation from jsonb_array_elements(p_volumes) as v
             union all
            select s ->> 'id', 'snapshot', s -> 'tags', s ->> 'operation' from jsonb_array_elements(p_snapshots) as s) as u
     where not exists (select from disk_volume as v where v.cloud_id = u.id)
       and not exists (select from disk_snapshot as s where s.cloud_id = u.id)
       -- The results of these calls are still awaited.
       and not exists (select from disk_volume as v where v.cloud_id is null and v.state = 'creating' and u.operation = v.operation::text)
       and not exists (select from disk_snapshot as s where s.cloud_id is null and s.state = 'wanted' and u.operation = s.operation::text)
        on conflict (cloud_id) do update set seen_at = excluded.seen_at, tags = excluded.tags;
    insert into tally as y (metric, labels, value)
    select 'odcd_orphans_found_total', array[t.kind], count(*) from disk_stray as t where t.first_at = p_now group by t.kind order by t.kind
        on conflict (metric, labels) do update set value = y.value + excluded.value;
    -- odc made this call, but no row has it: the database is older than the cloud. Reported once; a copy keeps its operation.
    with newer as (
        select distinct on (d.id) d.id, t.kind, t.cloud_id
          from disk_stray as t
          join disk as d on d.user_name = t.tags ->> 'gpu-dev-user' and d.name = t.tags ->> 'disk_name' and d.deleted_at is null
         where t.first_at = p_now and t.tags ? 'odc-operation'
           and not exists (select from disk_volume as v where v.operation::text = t.tags ->> 'odc-operation')
           and not exists (select from disk_snapshot as s where s.operation::text = t.tags ->> 'odc-operation')
         order by d.id, t.kind, t.cloud_id
    ), troubled as (
        update disk as d
           set trouble_at = p_now,
               trouble = format('the cloud has %s %s of it, which this database does not know: was it restored from a backup? An operator must check it '
                                '(`odcctl disk unlock` continues from the newest known snapshot)', n.kind, n.cloud_id)
          from newer as n
         where d.id = n.id and d.trouble is null and d.holder is null
        returning d.id
    )
    select array_agg(id) into v_troubled from troubled;
    if v_troubled is not null then
        perform _judge_needs(v_troubled, p_now);
    end if;
    delete from disk_stray where seen_at < p_now;
    return (select count(*) from disk_stray);
end;
$$;
