-- odc.drop_detached: drop a table that was a partition of attempt, job or prediction; the used time of its attempts stays counted.
-- Locks      the table, access exclusive: no other session uses it any longer; history_gone
create or replace function odc.drop_detached(p_name text)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    if p_name like 'attempt%' then
        execute format(
            $sql$
            update history_gone
               set gpu_ms = gpu_ms + (select coalesce(sum(a.gpus * _attempt_ms(a.started_at, a.ended_at, a.ended_at)), 0)
                                        from odc.%I as a)
            $sql$, p_name);
    end if;
    execute format('drop table odc.%I', p_name);
end;
$$;
