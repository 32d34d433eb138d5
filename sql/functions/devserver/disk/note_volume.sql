-- odc.note_volume: record the result of work on a volume. A result that does not fit the row's current state changes
-- nothing.
-- Arguments  p_verb    as take_disk_work returned it
--            p_answer  {"cloud_id", "state"} from the cloud, state 'missing': it does not exist; {"done": bool} of
--                      publish, withdraw; {"busy": why} retry; {"refused": why} it will never succeed
-- Locks      term for share; the turn; disk_volume, disk, disk_snapshot, running
-- Raises     OD020 LeadershipLost
create or replace function odc.note_volume(p_term bigint, p_id bigint, p_verb text, p_answer jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_volume  disk_volume;
    v_disk    disk;
    v_state   text := p_answer ->> 'state';
    v_refused text := p_answer ->> 'refused';
    v_never   boolean := false;             -- the volume does not exist, or never had data
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    select * into v_volume from disk_volume as v where v.id = p_id for update;
    select * into v_disk from disk as d where d.id = v_volume.disk_id;
    if p_answer ? 'busy' or v_refused is not null and p_verb <> 'publish' and v_volume.state <> 'creating' then
        update disk_volume set tries = tries + 1, trouble = coalesce(v_refused, p_answer ->> 'busy'), due_at = p_now + _disk_delay(tries)
         where id = p_id and due_at is not null;
        return;
    end if;

    if v_volume.state = 'creating' then
        if v_refused is null and v_state in ('missing', 'error') then
            v_refused := case v_state when 'missing' then 'the cloud no longer has it' else 'the cloud failed to make it' end;
        end if;
        if v_refused is not null then
            v_never := true;
            update disk_volume set state = case when cloud_id is null or v_state = 'missing' then 'deleted' else 'deleting' end, state_at = p_now,
                   trouble = v_refused, due_at = case when cloud_id is null or v_state = 'missing' then null else p_now end where id = p_id;
            perform _fail_preparation(v_volume.job_id, v_volume.attempt, format('disk "%s" cannot be prepared: %s', v_disk.name, v_refused), p_now);
        elsif v_volume.over_at is not null then
            v_never := true;
            update disk_volume set cloud_id = coalesce(cloud_id, p_answer ->> 'cloud_id'), state = 'deleting', state_at = p_now, due_at = p_now,
                   tries = 0, trouble = null where id = p_id;
        else
            update disk_volume set cloud_id = coalesce(cloud_id, p_answer ->> 'cloud_id'), tries = 0, trouble = null,
                   state = case when v_state = 'available' then 'available' else state end,
                   due_at = case when v_state = 'available' then p_now
                                 else p_now + least(interval '5 seconds', greatest(interval '0.5 seconds', (p_now - state_at) / 8)) end
             where id = p_id;
        end if;
    elsif v_volume.state = 'published' and p_verb = 'publish' then
        if v_refused is not null then
            update disk_volume set trouble = v_refused, due_at = null where id = p_id;
            perform _fail_preparation(v_volume.job_id, v_volume.attempt, format('disk "%s" cannot be mounted: %s', v_disk.name, v_refused), p_now);
        else
            update disk_volume set published_at = coalesce(published_at, p_now), due_at = null, tries = 0, trouble = null where id = p_id;
            insert into event (at, kind, actor, job_id, detail)
            select p_now, 'disk_ready', 'odcd', v_volume.job_id, jsonb_strip_nulls(jsonb_build_object(
                       'name', v_disk.name, 'user', v_disk.user_name, 'volume', v_volume.cloud_id, 'zone', v_volume.zone,
                       'snapshot', (select s.cloud_id from disk_snapshot as s where s.id = v_volume.snapshot_id)))
             where v_volume.published_at is null;
        end if;
    elsif v_volume.state = 'releasing' and p_verb = 'withdraw' then
        -- Slower while pods end: when many end together, each would otherwise be checked every second.
        update disk_volume set withdrawn_at = case when (p_answer ->> 'done')::boolean then p_now end, trouble = null,
               tries = case when (p_answer ->> 'done')::boolean then 0 else tries + 1 end,
               due_at = case when (p_answer ->> 'done')::boolean then p_now else p_now + least(interval '10 seconds', _disk_delay(tries)) end where id = p_id;
    elsif v_volume.state = 'releasing' and v_state = 'missing' then
        update disk_volume set state = 'lost', state_at = p_now, due_at = null where id = p_id;
        update disk set holder = null, trouble_at = p_now, trouble = format(
                   'its volume %s is gone, and with it the data that reservation %s wrote; an operator must check it (`odcctl disk unlock` continues from the newest snapshot)',
                   v_volume.cloud_id, v_volume.job_id)
         where id = v_disk.id;
        insert into event (at, kind, actor, job_id, detail)
        values (p_now, 'disk_lost', 'odcd', v_volume.job_id, jsonb_build_object(
                    'name', v_disk.name, 'user', v_disk.user_name, 'volume', v_volume.cloud_id));
    elsif v_volume.state = 'releasing' and v_state = 'available' then
        update disk_volume set state = 'snapshotting', state_at = p_now, due_at = null, tries = 0, trouble = null where id = p_id;
        insert into disk_snapshot (disk_id, volume_id, kind, size_gib, asked_at, contents, used_bytes, due_at)
        values (v_disk.id, p_id, v_volume.end_kind, v_volume.size_gib, p_now, v_volume.contents, v_volume.used_bytes, p_now);
    elsif v_volume.state = 'releasing' then
        -- Detach by force once, then check, and repeat.
        update disk_volume set tries = case p_verb when 'detach' then 1 else 0 end,
               due_at = p_now + case when p_verb = 'look' and tries > 0 then interval '15 seconds' else interval '2 seconds' end,
               trouble = case when p_verb = 'detach' or tries > 0 then 'the cloud still has it attached; odc requested to detach it by force' end where id = p_id;
    elsif v_volume.state = 'deleting' and p_verb = 'delete' then
        update disk_volume set state = 'deleted', state_at = p_now, due_at = null, tries = 0, trouble = null where id = p_id;
    end if;
    if v_never then
        update disk set holder = null where id = v_disk.id and holder = v_volume.job_id;
    end if;
    if _judge_needs(array[v_disk.id], p_now) then
        perform _wake();
    end if;
end;
$$;
