-- odc._leader_of: the heterogeneous job that has this id for one of its components but the first.
-- Returns    its id; null: no job has it, or a job has it as its own
create or replace function odc._leader_of(p_id bigint)
returns bigint
language sql stable as $$
    select j.id
      from (select id, options from odc.job where id <= p_id and id > p_id - 128 order by id desc limit 1) as j
     where j.id < p_id and jsonb_array_length(coalesce(j.options -> 'components', '[]')) > p_id - j.id
$$;
