-- odc.remove_cron: remove all recurring jobs of the caller, or, for operators, of another user. Pending jobs that they
-- started are cancelled; running jobs continue.
-- Arguments  p_user  null: the caller
-- Returns    what there was, as show_cron
-- Locks      the turn; cron_table, cron_entry; pending, job
-- Raises     OD013 NotOwner
create or replace function odc.remove_cron(p_actor jsonb, p_user text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_uid constant integer := _find_cron_user(p_actor, p_user);
    v_old text;
begin
    perform _take_turn(p_now);
    perform from cron_table where uid = v_uid for update;
    perform from cron_entry where uid = v_uid order by id for update;
    v_old := _cron_json(v_uid, coalesce(p_user, p_actor ->> 'user'));
    perform _remove_cron_entries(v_uid, array(select id from cron_entry where uid = v_uid), p_actor ->> 'user', p_now);
    delete from cron_table where uid = v_uid;
    if found then
        insert into event (at, kind, actor, detail)
        values (p_now, 'cron_removed', p_actor ->> 'user', jsonb_build_object('user', coalesce(p_user, p_actor ->> 'user')));
        perform _wake();
    end if;
    return v_old;
end;
$$;
