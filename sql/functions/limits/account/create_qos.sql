-- odc.create_qos: create a QOS, by an operator. A deleted QOS of that name is restored with default values.
-- Arguments  p_actor        {user, uid, operator}
--            p_ask          as _write_qos
--            p_key, p_digest  idempotency key, and a digest that identifies its request; null: none
-- Returns    the QOS as JSON text
-- Locks      the turn; idempotency by (uid, key)
-- Raises     OD010 BadRequest, OD013 NotOwner, OD014 KeyReused, OD028 InUse, and what _write_qos raises
create or replace function odc.create_qos(
    p_actor jsonb, p_name text, p_ask jsonb, p_key text, p_digest text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_id integer;
begin
    perform _check_operator(p_actor, 'create QOS');
    perform _take_turn(p_now);
    if not _repeats_request(p_actor, p_key, p_digest, p_now) then
        perform _check_new_name('QOS', p_name);
        insert into qos as q (name) values (p_name)
        on conflict (name) do update
           set deleted_at = null, description = null, priority = 0, restricted = false, deny_on_limit = true,
               usage_factor = 1, preempts = '{}', preempt_mode = 'requeue', exempt_s = 0, grace_s = 0, idle_warn_s = 0, idle_release_s = 0
         where q.deleted_at is not null
        returning id into v_id;
        if v_id is null then
            raise exception using errcode = 'OD028',
                message = format('QOS "%s" already exists', p_name), hint = 'Edit it, or choose another name.';
        end if;
        perform _write_qos(v_id, p_ask);
        insert into event (at, kind, actor, detail)
        values (p_now, 'qos_created', p_actor ->> 'user', jsonb_build_object('qos', p_name, 'new', p_ask));
    end if;
    return list_qos(p_name)::json ->> 0;
end;
$$;
