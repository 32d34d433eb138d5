-- odc._resolve_account: the account a job is charged to: the requested one, else the user's default, else `default`.
-- Arguments  p_name           the requested account; null: none
--            p_partition_ids  where the job may run: an association may be limited to one of them
-- Raises     OD002 UnknownAccount; OD026 NotAllowed: only members may use accounts, and the user is not a member
create or replace function odc._resolve_account(p_uid integer, p_user text, p_name text, p_partition_ids integer[])
returns integer
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_id      integer;
    v_name    text;
    v_enforce boolean;
begin
    select a.id, w.name, o.enforce into v_id, v_name, v_enforce
      from account_setting as o
     cross join lateral (
           select coalesce(p_name, (select d.name from association as m join account as d on d.id = m.account_id
                                     where m.uid = p_uid and m.is_default), 'default') as name) as w
      left join account as a on a.name = w.name and a.deleted_at is null;
    if v_id is null then
        raise exception using errcode = 'OD002',
            message = format('account "%s" does not exist', v_name),
            hint = format('Accounts: %s.', (select string_agg(name, ', ' order by name) from account where deleted_at is null));
    end if;
    if v_enforce and not exists (select from association as m
                                  where m.account_id = v_id and m.uid = p_uid
                                    and (m.partition_id is null or p_partition_ids <@ array(
                                         select o.partition_id from association as o
                                          where o.account_id = v_id and o.uid = p_uid))) then
        raise exception using errcode = 'OD026',
            message = case when exists (select from association where account_id = v_id and uid = p_uid)
                           then format('user %s may use account "%s" in other partitions only', p_user, v_name)
                           else format('user %s is not a member of account "%s"', p_user, v_name) end,
            hint = coalesce(
                (select format('Accounts of %s: %s.', p_user, string_agg(distinct a.name, ', '))
                   from association as m join account as a on a.id = m.account_id
                  where m.uid = p_uid having count(*) > 0),
                'An operator, or a coordinator of the account, can add the user: `odcctl user add`.');
    end if;
    return v_id;
end;
$$;
