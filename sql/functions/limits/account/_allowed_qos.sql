-- odc._allowed_qos: the QOS that a user may use in an account, and the default for a job that names none.
-- The user's association decides; else the account; else the nearest account above. If none of them sets it, every QOS
-- that is not restricted is allowed, and the default is `normal`.
-- Returns    allowed: ids; chosen: null if the default is not among them
create or replace function odc._allowed_qos(
    p_uid integer, p_account_id integer, p_partition_ids integer[], out allowed integer[], out chosen integer)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_default integer;
begin
    with settings as (
        select case when m.partition_id is null then -1 else -2 end as depth, m.id, m.qos_ids, m.default_qos_id
          from association as m
         where m.account_id = p_account_id and m.uid = p_uid
           and (m.partition_id is null or p_partition_ids = array[m.partition_id])
         union all
        select l.depth, a.id, a.qos_ids, a.default_qos_id
          from _account_lines() as l join account as a on a.id = l.ancestor_id
         where l.account_id = p_account_id
    )
    select (select s.qos_ids from settings as s where s.qos_ids is not null order by s.depth, s.id limit 1),
           (select s.default_qos_id from settings as s where s.default_qos_id is not null order by s.depth, s.id limit 1)
      into allowed, v_default;
    allowed := array(select q.id from qos as q
                      where q.deleted_at is null and case when allowed is null then not q.restricted else q.id = any (allowed) end
                      order by q.id);
    v_default := coalesce(v_default, (select id from qos where name = 'normal'));
    if v_default = any (allowed) then
        chosen := v_default;
    elsif cardinality(allowed) = 1 then
        chosen := allowed[1];
    end if;
end;
$$;
