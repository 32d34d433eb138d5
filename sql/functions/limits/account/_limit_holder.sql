-- odc._limit_holder: the jobs that share a limit: a description in words, and filters that find them.
-- Arguments  as _limits_of returns them
-- Returns    holder: 'user ann in QOS normal'; account_ids, uid, qos_id, partition_id: null: any
create or replace function odc._limit_holder(
    p_scope text, p_scope_id integer, p_per text, p_account integer, p_uid integer,
    out holder text, out account_ids integer[], out uid integer, out qos_id integer, out partition_id integer)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_what text;
begin
    account_ids := case when p_account > 0 then array[p_account] end;
    uid := nullif(p_uid, -2);
    if p_scope = 'qos' then
        qos_id := p_scope_id;
        v_what := 'QOS ' || (select q.name from qos as q where q.id = p_scope_id);
    elsif p_scope = 'partition' then
        partition_id := p_scope_id;
        v_what := 'partition ' || (select t.name from partition as t where t.id = p_scope_id);
    elsif p_scope = 'account' then
        if p_per = 'group' then
            account_ids := array(select l.account_id from _account_lines() as l where l.ancestor_id = p_scope_id);
        end if;
        v_what := 'account ' || (select a.name from account as a where a.id = coalesce(nullif(p_account, 0), p_scope_id));
    else
        select array[m.account_id], m.uid, m.partition_id, 'account ' || a.name || coalesce(' and partition ' || t.name, '')
          into account_ids, uid, partition_id, v_what
          from association as m
          join account as a on a.id = m.account_id
          left join partition as t on t.id = m.partition_id
         where m.id = p_scope_id;
    end if;
    holder := case when p_per = 'job' then 'a job in ' || v_what
                   when uid is not null then format('user %s in %s', _user_name(uid), v_what)
                   when p_per = 'account' then format('account %s in %s', (select a.name from account as a where a.id = p_account), v_what)
                   else v_what end;
end;
$$;
