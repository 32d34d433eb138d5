-- odc._resolve_partitions: the partitions a job may run in, and its time limit there.
-- Arguments  p_names         as requested, in order; empty: the default partition
--            p_time_limit_s  null: the shortest default of the partitions, and within the limit of each
-- Returns    partition_ids in the requested order, and the time limit in seconds
-- Raises     OD001 UnknownPartition; OD012 WrongState: it accepts no jobs; OD009 LimitExceeded
create or replace function odc._resolve_partitions(
    p_names text[], p_time_limit_s integer, out partition_ids integer[], out time_limit_s integer)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_closed text;
    v_limit  record;
begin
    if p_names is null or p_names = '{}' then
        p_names := array(select name from partition where is_default);
    end if;
    select array_agg(p.id order by w.ord),
           string_agg(format('"%s" is %s', p.name, p.state), ', ' order by w.ord) filter (where p.state in ('INACTIVE', 'DRAIN')),
           least(min(coalesce(p.default_time_limit_s, p.max_time_limit_s, 2147483647)),
                 min(coalesce(p.max_time_limit_s, 2147483647)))
      into partition_ids, v_closed, time_limit_s
      from (select w.name, min(w.ord) as ord from unnest(p_names) with ordinality as w (name, ord) group by w.name) as w
      join partition as p on p.name = w.name;
    if cardinality(partition_ids) is distinct from (select count(distinct name) from unnest(p_names) as name)
       or partition_ids is null then
        raise exception using errcode = 'OD001',
            message = coalesce(
                (select format('partition "%s" does not exist', w.name)
                   from unnest(p_names) with ordinality as w (name, ord)
                  where not exists (select from partition as p where p.name = w.name)
                  order by w.ord limit 1),
                'no partition was named and there is no default partition'),
            hint = format('You may submit to: %s.',
                          (select coalesce(string_agg(p.name, ', ' order by p.name), 'none') from partition as p
                            where p.state in ('UP', 'DOWN')));
    end if;
    if v_closed is not null then
        raise exception using errcode = 'OD012',
            message = format('partition %s and accepts no jobs', v_closed),
            hint = 'Name another partition; `odcctl nodes` shows them. An operator can set its state to UP.';
    end if;
    if p_time_limit_s is null then
        return;
    end if;
    select p.name, p.max_time_limit_s as s into v_limit
      from partition as p
     where p.id = any (partition_ids) and p.max_time_limit_s < p_time_limit_s
     order by p.max_time_limit_s limit 1;
    if found then
        raise exception using errcode = 'OD009',
            message = format('time limit %s exceeds the limit of %s of partition "%s"',
                             _duration(p_time_limit_s),
                             _duration(v_limit.s), v_limit.name),
            hint = format('Request at most %s, or name another partition.', _duration(v_limit.s));
    end if;
    time_limit_s := p_time_limit_s;
end;
$$;
