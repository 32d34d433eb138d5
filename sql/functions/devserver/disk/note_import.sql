-- odc.note_import: decide about each disk that the cloud has of gpu-dev, and import those that can be. Importing writes
-- only intents: the worker adds odc's tags to a snapshot, or saves a volume in a snapshot.
-- Arguments  p_answer  {"found": [...]}: as odcd.disks.gpu_dev returns them; {"busy": why} retry; {"refused": why} it will
--                      never succeed
-- Locks      term for share; of an import, not of a list: the turn, disk, disk_snapshot; disk_import
-- Raises     OD020 LeadershipLost
create or replace function odc.note_import(p_term bigint, p_id bigint, p_answer jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_import disk_import;
    v_found  record;
    v_uids   jsonb := '{}';                 -- of the owners so far
    v_one    jsonb;
    v_disks  jsonb[] := '{}';
    v_taken  text[] := '{}';
begin
    perform _hold_term(p_term);
    if (select i.applies from disk_import as i where i.id = p_id) then
        perform _take_turn(p_now);
    end if;
    select * into v_import from disk_import as i where i.id = p_id for update;
    if v_import.state is distinct from 'wanted' then
        return;
    elsif p_answer ? 'busy' then
        update disk_import set tries = tries + 1, trouble = p_answer ->> 'busy', due_at = p_now + _disk_delay(tries) where id = p_id;
        return;
    elsif p_answer ? 'refused' then
        update disk_import set state = 'refused', trouble = p_answer ->> 'refused', due_at = null where id = p_id;
        return;
    end if;
    for v_found in
        select f as facts, coalesce(v_import.owners ->> (f ->> 'gpu_dev_user'), f ->> 'gpu_dev_user') as owner
          from jsonb_array_elements(p_answer -> 'found') as f
         where v_import.users is null or f ->> 'gpu_dev_user' = any (v_import.users)
         order by f ->> 'gpu_dev_user', f ->> 'gpu_dev_disk'
    loop
        if not v_uids ? v_found.owner then
            v_uids := v_uids || jsonb_build_object(v_found.owner, _import_owner(v_found.owner));
        end if;
        v_one := _judge_import(v_found.facts, v_found.owner, (v_uids ->> v_found.owner)::integer, v_taken);
        if v_one ->> 'outcome' = 'import' and v_import.applies then
            v_one := v_one || '{"outcome": "imported"}';
            perform _import_disk(v_one, v_found.facts, (v_uids ->> v_found.owner)::integer, v_import.user_name, p_now);
        elsif v_one ->> 'outcome' = 'import' then
            v_taken := v_taken || format('%s/%s', v_one ->> 'user', v_one ->> 'name');
        end if;
        v_disks := v_disks || v_one;
    end loop;
    update disk_import set state = 'done', disks = to_jsonb(v_disks), trouble = null, due_at = null where id = p_id;
    perform _wake();
end;
$$;
