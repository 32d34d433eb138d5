-- odc._partition_name: the name of a partition, also of a deleted one; '' if there is none.
create or replace function odc._partition_name(p_id integer)
returns text
language sql stable as $$
    select coalesce((select t.name from odc.partition as t where t.id = p_id),
                    (select t.name from odc.partition_past as t where t.id = p_id order by t.past_id desc limit 1), '')
$$;
