-- odc.cover_ids: create partitions for ids whose partitions were dropped, so that a restore can bring their rows back.
-- Arguments  p_parent       job, attempt, prediction or event
--            p_low, p_high  the ids, from low to below high
-- Locks      the parent, share update exclusive, when one is missing
-- Raises     55P03 lock_not_available after 2 s
create or replace function odc.cover_ids(p_parent text, p_low bigint, p_high bigint)
returns void
language plpgsql volatile set search_path = odc, pg_temp set lock_timeout = '2s' as $$
declare
    v_gap  record;
    v_name text;
begin
    for v_gap in
        select lower(g) as low, upper(g) as high
          from unnest(int8multirange(int8range(p_low, p_high)) - coalesce((
               select range_agg(int8range(b.bounds[1]::bigint, b.bounds[2]::bigint))
                 from pg_inherits as i
                 join pg_class as c on c.oid = i.inhrelid
                cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''?(\d+)''?\) TO \(''?(\d+)')
                      as b (bounds)
                where i.inhparent = ('odc.' || p_parent)::regclass), '{}')) as g
    loop
        v_name := format('%s_%s_%s', p_parent, v_gap.low, v_gap.high);
        execute format('create table odc.%I (like odc.%I including all excluding identity)', v_name, p_parent);
        execute format('alter table odc.%I attach partition odc.%I for values from (%L) to (%L)',
                       p_parent, v_name, v_gap.low, v_gap.high);
    end loop;
end;
$$;
