-- odc.note_snapshot: record the result of work on a snapshot. A disk is free for the next job when its snapshot has
-- begun; its volume is deleted when the snapshot is completed. A failed snapshot is made again, and its volume stays
-- until one completes.
-- Arguments  as note_volume; p_answer may also have "progress"
-- Locks      term for share; the turn; disk_snapshot, disk_volume, disk
-- Raises     OD020 LeadershipLost
create or replace function odc.note_snapshot(p_term bigint, p_id bigint, p_verb text, p_answer jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_max_failed constant integer := 3;
    v_snapshot disk_snapshot;
    v_volume   disk_volume;
    v_disk     disk;
    v_state    text := p_answer ->> 'state';
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    select * into v_snapshot from disk_snapshot as s where s.id = p_id for update;
    select * into v_volume from disk_volume as v where v.id = v_snapshot.volume_id;
    select * into v_disk from disk as d where d.id = v_snapshot.disk_id;
    if p_answer ? 'busy' or p_answer ? 'refused' then
        update disk_snapshot set tries = tries + 1, trouble = coalesce(p_answer ->> 'refused', p_answer ->> 'busy'), due_at = p_now + _disk_delay(tries)
         where id = p_id and due_at is not null;
        return;
    end if;

    if v_snapshot.state in ('wanted', 'pending') and p_verb in ('create', 'look', 'save', 'adopt') then
        if v_state in ('error', 'missing') and v_snapshot.adopted then
            update disk_snapshot set state = 'error', due_at = null, trouble = 'the cloud no longer has it' where id = p_id;
            update disk set trouble_at = p_now, trouble = format(
                       'snapshot %s of gpu-dev was deleted before odc could adopt it; delete this disk, and import it again', v_snapshot.cloud_id)
             where id = v_disk.id;
        elsif v_state in ('error', 'missing') then
            update disk_snapshot set state = 'error', due_at = null,
                   trouble = case v_state when 'error' then 'the cloud failed to create it' else 'the cloud no longer has it' end where id = p_id;
            if (select count(*) from disk_snapshot as s where coalesce(s.volume_id = v_volume.id, s.source = v_snapshot.source) and s.disk_id = v_disk.id
                   and s.state = 'error') >= v_max_failed and v_disk.trouble is null then
                update disk set trouble_at = p_now, trouble = format(
                           'a snapshot of its volume %s failed %s times; the volume is kept and odc tries again, but an operator should check it',
                           coalesce(v_volume.cloud_id, v_snapshot.source), v_max_failed)
                 where id = v_disk.id;
            end if;
            insert into disk_snapshot (disk_id, volume_id, source, kind, size_gib, asked_at, contents, used_bytes, due_at)
            select disk_id, volume_id, source, kind, size_gib, p_now, contents, used_bytes, p_now + interval '10 seconds' from disk_snapshot where id = p_id;
        else
            update disk_snapshot set cloud_id = coalesce(cloud_id, p_answer ->> 'cloud_id'), state = v_state, tries = 0, trouble = null,
                   progress = (p_answer ->> 'progress')::integer, completed_at = case when v_state = 'completed' then p_now end,
                   due_at = case when v_state = 'completed' then case when labelled then null else p_now end
                                 else p_now + least(interval '15 seconds', greatest(interval '1 second', (p_now - asked_at) / 8)) end
             where id = p_id;
            update disk set holder = null where id = v_disk.id and holder = v_volume.job_id;
            if v_state = 'completed' then
                update disk_volume set state = 'deleting', state_at = p_now, due_at = p_now where id = v_volume.id and state = 'snapshotting';
                update disk set trouble = null, trouble_at = null where id = v_disk.id;
                insert into event (at, kind, actor, job_id, detail)
                select p_now, 'disk_saved', 'odcd', v_volume.job_id, jsonb_build_object(
                            'name', v_disk.name, 'user', v_disk.user_name, 'snapshot', coalesce(v_snapshot.cloud_id, p_answer ->> 'cloud_id'),
                            'took_s', round(extract(epoch from p_now - v_snapshot.asked_at)))
                 where not v_snapshot.adopted;
            end if;
        end if;
    elsif p_verb = 'label' then
        update disk_snapshot set labelled = true, tries = 0, trouble = null, due_at = null
         where id = p_id and state = 'completed' and due_at <= p_now;
    elsif v_snapshot.state = 'deleting' and p_verb = 'delete' then
        update disk_snapshot set state = 'deleted', due_at = null, tries = 0, trouble = null where id = p_id;
    end if;
    if _judge_needs(array[v_disk.id], p_now) then
        perform _wake();
    end if;
end;
$$;
