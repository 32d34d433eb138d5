-- odc.make_partitions: PostgreSQL partitions for the ids to come.
-- Each holds 2,000,000 ids; there are always p_ahead of them above the highest id in use.
-- Locks      the partitioned parents, briefly, only when one is missing
create or replace function odc.make_partitions(p_ahead integer default 3)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_span constant bigint := 2000000;
    v_part record;
begin
    for v_part in
        with high (parent, id) as (
            values ('job', (select last_value from job_id_seq)),
                   ('attempt', (select last_value from job_id_seq)),
                   ('prediction', (select last_value from job_id_seq)),
                   ('event', (select coalesce(max(id), 0) from event))
        )
        select h.parent, n * v_span as low, format('%s_%s', h.parent, n) as name
          from high as h, generate_series(h.id / v_span, h.id / v_span + p_ahead) as n
         where to_regclass(format('odc.%I', format('%s_%s', h.parent, n))) is null
         order by h.parent, n
    loop
        execute format('create table odc.%I partition of odc.%I for values from (%L) to (%L)',
                       v_part.name, v_part.parent, v_part.low, v_part.low + v_span);
    end loop;
end;
$$;
