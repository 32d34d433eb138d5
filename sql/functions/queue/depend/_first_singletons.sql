-- odc._first_singletons: of the pending singletons with these names, the first of each name: no other can be next.
-- The tasks of an array share the first place.
-- Arguments  p_name_keys  see _name_key
-- Returns    ids; null: none
create or replace function odc._first_singletons(p_name_keys bigint[])
returns bigint[]
language plpgsql stable set search_path = odc, pg_temp set enable_seqscan = off as $$
begin
    return (
        select array_agg(distinct f.job_id)
          from (select d.job_id, p.since, min(p.since) over (partition by d.name_key) as first
                  from (select distinct k from unnest(p_name_keys) as k) as n (name_key)
                 cross join lateral (select x.job_id, x.name_key from dependency as x
                                      where x.name_key = n.name_key and x.state = 'waiting' and x.kind = 'singleton'
                                      offset 0) as d
                 cross join lateral (select coalesce(x.array_job_id, x.job_id) as since
                                       from pending as x where x.job_id = d.job_id offset 0) as p) as f
         where f.since = f.first);
end;
$$;
