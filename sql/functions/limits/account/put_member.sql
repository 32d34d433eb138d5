-- odc.put_member: add a user to an account, or change a membership; by an operator or a coordinator.
-- A name in use keeps its uid. Only operators may give a uid, or change another user's default account.
-- Arguments  p_actor  {user, uid, operator}
--            p_uid    of the user, from the machine; null: it does not know the name
--            p_new    add; otherwise change
--            p_ask    partition (which membership; null: the one for all partitions), and any of shares, default,
--                     default_qos, qos (null: as the account), limits, uid (as the request gives it)
--            p_key, p_digest  idempotency key, and a digest that identifies its request; null: none
-- Returns    the user as JSON text
-- Locks      the turn; login_user, share: a first login chooses its uid before or after this
-- Raises     OD001 UnknownPartition, OD002 UnknownAccount, OD004 UnknownQos, OD010 BadRequest, OD013 NotOwner,
--            OD014 KeyReused, OD027 UnknownUser, OD028 InUse: already a member,
--            or as _uid_of and _check_identity
create or replace function odc.put_member(
    p_actor jsonb, p_account text, p_user text, p_uid integer, p_new boolean, p_ask jsonb, p_now timestamptz,
    p_key text default null, p_digest text default null)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_account   account;
    v_partition integer;
    v_uid       integer;
    v_operator  constant boolean := coalesce((p_actor ->> 'operator')::boolean, false);
    v_member    association;
    v_where     text;
    v_default   integer[] := _find_qos(array_remove(array[p_ask ->> 'default_qos'], null));
    v_qos       integer[] := _find_qos(_words(nullif(p_ask -> 'qos', 'null')));
begin
    perform _take_turn(p_now);
    v_account := _find_account(p_account);
    perform _check_coordinator(p_actor, v_account.id);
    if _repeats_request(p_actor, p_key, p_digest, p_now) then
        return list_users(p_user)::json ->> 0;
    end if;
    lock table login_user in share mode;
    v_uid := _given_uid(p_actor, p_user, p_uid, (p_ask ->> 'uid')::integer);
    if p_new then
        perform _check_identity(p_actor, p_user, v_uid);
    end if;
    if p_ask ->> 'partition' is not null then
        select id into v_partition from partition where name = p_ask ->> 'partition';
        if not found then
            raise exception using errcode = 'OD001',
                message = format('partition "%s" does not exist', p_ask ->> 'partition'),
                hint = format('Partitions: %s.', (select string_agg(name, ', ' order by name) from partition));
        end if;
    end if;
    if not v_operator
       and not coalesce(v_qos, '{}') || coalesce(v_default, '{}')
               <@ (select m.allowed from _allowed_qos(-1, v_account.id, '{}') as m) then
        raise exception using errcode = 'OD013',
            message = format('account "%s" does not have all of these QOS', p_account),
            hint = 'Only an operator may give a user other QOS.';
    end if;
    select * into v_member from association as m
     where m.account_id = v_account.id and m.uid = v_uid and m.partition_id is not distinct from v_partition;
    if found and p_new then
        raise exception using errcode = 'OD028',
            message = format('user %s is already a member of account "%s"', p_user, p_account), hint = 'Edit the membership.';
    elsif not found and not p_new then
        select string_agg(coalesce('partition ' || t.name, 'all partitions'), ', ' order by t.name nulls first) into v_where
          from association as m left join partition as t on t.id = m.partition_id
         where m.account_id = v_account.id and m.uid = v_uid;
        raise exception using errcode = 'OD027',
            message = format('user %s is not a member of account "%s"%s', p_user, p_account,
                             coalesce(' in partition ' || (p_ask ->> 'partition'),
                                      case when v_where is not null then ' for all partitions' end, '')),
            hint = case when v_where is not null then format('Name an existing membership: there is one for %s.', v_where)
                        else format('Its users: %s.', coalesce((select string_agg(distinct m.user_name, ', ') from association as m
                                                                 where m.account_id = v_account.id), 'none')) end;
    elsif p_new then
        insert into association (account_id, uid, user_name, partition_id, made_at)
        values (v_account.id, v_uid, p_user, v_partition, p_now)
        returning * into v_member;
    end if;
    if (p_ask ->> 'default')::boolean then
        perform _check_default(p_actor, p_user, v_uid);
    end if;
    if coalesce((p_ask ->> 'default')::boolean,
                p_new and (v_operator or v_uid = (p_actor ->> 'uid')::integer)
                and not exists (select from association as m where m.uid = v_uid and m.is_default)) then
        update association set is_default = false where uid = v_uid and is_default;
        update association set is_default = true where id = v_member.id;
    end if;
    update association as m
       set shares = coalesce((p_ask ->> 'shares')::integer, m.shares),
           default_qos_id = case when p_ask ? 'default_qos' then v_default[1] else m.default_qos_id end,
           qos_ids = case when p_ask ? 'qos' then v_qos else m.qos_ids end
     where m.id = v_member.id;
    perform _write_limits('user', v_member.id, coalesce(nullif(p_ask -> 'limits', 'null'), '{}'));
    insert into event (at, kind, actor, detail)
    values (p_now, case when p_new then 'user_added' else 'user_edited' end, p_actor ->> 'user',
            jsonb_build_object('user', p_user, 'account', p_account, 'new', p_ask));
    perform _wake();
    return list_users(p_user)::json ->> 0;
exception
    when check_violation or numeric_value_out_of_range then
        raise exception using errcode = 'OD010',
            message = format('shares cannot be %s', p_ask ->> 'shares'), hint = 'Give a whole number from 0 to 1000000.';
end;
$$;
